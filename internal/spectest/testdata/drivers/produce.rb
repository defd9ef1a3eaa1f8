# Runs the producer's usage line as the specification has it, then hangs up.
require_relative 'specification'

JobClient.connection.close
