# The heartbeat thread of section 3.5, with the parts that the section leaves to the reader.
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
