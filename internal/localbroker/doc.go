// Package localbroker runs a private RabbitMQ node from the installed Debian package, or a private
// LavinMQ.
//
// `millrace up` uses it to give a new user a broker without changing the broker of the machine.
// Tests use it to have a broker that they may kill. The node shares nothing with a RabbitMQ that
// runs as a service. It has its own node name, ports, Erlang cookie, epmd (Erlang's name server),
// data, log and plugin list, and it listens on 127.0.0.1 only. It runs as the user that starts it,
// root or not.
//
// # Promises
//
//   - Start returns when the node can be used. AMQP and the management API answer, and a stream can
//     be declared, written and read. RabbitMQ accepts connections before its streams work.
//   - The content of Config.Dir survives Stop, Kill and the death of this process. The node's name
//     does not depend on the directory or the ports. So the directory can be moved, and the ports
//     can change.
//   - Nothing outlives this process. The node and epmd are its children, and the kernel kills them
//     when it dies, for any reason. For the broker that is a crash, from which RabbitMQ recovers at
//     the next start.
//   - Only one node uses a directory. The node inherits a lock on it, so a second Start waits until
//     the first node is really gone.
//
// # Failures
//
// A start that fails leaves no process behind. Its error says why, with the last lines that the
// node wrote. Everything that it wrote is in Dir/log.
//
// A node that exits by itself closes Exited, and is not started again. The caller decides whether
// to call Restart.
package localbroker
