// Package plugintest tests the plugin for RabbitMQ, broker/rabbitmq_millrace, on real nodes that
// run real sidecars. `make test-plugin` and `make test-plugin-rabbitmq4` run it: `make test` does
// not, because it takes minutes.
//
// The tests that need no node of their own share one. They ask the management port as users do.
package plugintest
