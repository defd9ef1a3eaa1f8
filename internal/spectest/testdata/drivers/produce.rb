# Runs the usage line of the producer as the specification prints it, and closes the connection.
require_relative 'specification'

JobClient.connection.close
