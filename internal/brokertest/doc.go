// Package brokertest gives tests a real broker, and faults. There are no mocks of AMQP in this
// project: what a broker does in odd moments is what the tests are about.
//
// # Which broker
//
// The first of these that applies:
//
//  1. MILLRACE_TEST_AMQP_URL and MILLRACE_TEST_MANAGEMENT_URL, which must both name an administrator,
//     for example amqp://guest:guest@localhost:5672/ and http://guest:guest@localhost:15672. Nothing
//     on that broker is touched but vhosts and users whose names begin with "test-".
//  2. MILLRACE_TEST_IMAGE: a container from that image.
//  3. A private node of the LavinMQ whose program MILLRACE_TEST_LAVINMQ names.
//  4. A private node (internal/localbroker) of the RabbitMQ whose programs are in MILLRACE_TEST_RABBITMQ,
//     or of the installed package.
//  5. A container from rabbitmq:3.13-management.
//
// The broker is started when the first test of a process asks for it and lives until the process
// ends, so each package that uses it has
//
//	func TestMain(m *testing.M) { brokertest.Main(m) }
//
// which stops it, and fails if a goroutine is left behind.
//
// # What a test gets
//
// New gives a test a vhost and a user of its own, which vanish when the test ends, so tests can run
// beside each other. What brokers do differently is told by Vhost.Features. Own gives it a whole node of its own, which it may kill:
// of 3 or 4, also where the others share another broker; it is skipped where there is neither. OwnErlang and Erlang are for tests of what
// only RabbitMQ can be made to do. NewProxy puts a network in between that can be cut, frozen and
// slowed down.
package brokertest
