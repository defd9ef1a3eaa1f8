# Section 3.5's heartbeat thread, with what it leaves to the reader.
require 'bunny'
require 'json'
require 'socket'

CHANNEL = Bunny.new(ENV.fetch('AMQP_URL')).tap(&:start).create_channel

def channel = CHANNEL
def hostname = Socket.gethostname
def tag = 'production'
def worker_count = 5
def busy_worker_count = 1

require_relative 'specification'
sleep
