// Package plugintest tests the plugin for RabbitMQ, broker/rabbitmq_millrace, on real nodes that
// run real sidecars. `make test-plugin` and `make test-plugin-rabbitmq4` run it: `make test` does
// not, because it takes minutes.
//
// Two flags run what takes longer: -rates 7 measures delayed exchanges in so many pairs, and -kills 10
// kills sidecars and nodes so often while delayed messages fall due.
//
// The tests that need no node of their own share one. They ask the management port as users do.
package plugintest
