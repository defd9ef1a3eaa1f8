// Package brokertest provides real brokers, and faults, for tests. This project has no mocks of
// AMQP: the tests are about what a real broker does in unusual situations.
//
// # Which broker
//
// The first of these that applies:
//
//  1. MILLRACE_TEST_AMQP_URL and MILLRACE_TEST_MANAGEMENT_URL. Both must name an administrator, for
//     example amqp://guest:guest@localhost:5672/ and http://guest:guest@localhost:15672. The tests
//     only touch vhosts and users on that broker with names that begin with "test-".
//  2. MILLRACE_TEST_IMAGE: a container from that image.
//  3. MILLRACE_TEST_LAVINMQ: a private node of the LavinMQ with this program.
//  4. A private node (internal/localbroker) of the RabbitMQ with its programs in
//     MILLRACE_TEST_RABBITMQ, or of the installed package.
//  5. A container from rabbitmq:3.13-management.
//
// Containers need the build tag testcontainers, because the client of Docker takes long to compile.
//
// The broker starts when the first test of a process needs it, and runs until the process ends. So
// each package that uses it has
//
//	func TestMain(m *testing.M) { brokertest.Main(m) }
//
// Main stops the broker, and fails if a goroutine is left behind.
//
// # What a test gets
//
//   - New returns a vhost and a user for one test. Both are deleted when the test ends, so tests
//     can run in parallel.
//   - Vhost.Features returns what this broker can do, for tests of differences between brokers.
//   - Own returns a vhost on a node for this test alone, which the test may kill. The node is of
//     kind 3 or 4, even if other tests share another broker. The test is skipped if neither is
//     available.
//   - OwnErlang and Erlang are for tests of effects that only RabbitMQ can be made to show.
//   - NewProxy puts a network in between that can be cut, frozen and slowed down.
package brokertest
