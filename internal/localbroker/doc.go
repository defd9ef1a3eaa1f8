// Package localbroker runs a private RabbitMQ node from the installed Debian package, or a private LavinMQ.
//
// `millrace up` uses it to give a newcomer a broker without touching the machine's own one, and the
// tests use it to have a broker that they may kill. The node shares nothing with a RabbitMQ that
// runs as a service: it has its own node name, ports, Erlang cookie, epmd (Erlang's name server),
// data, log and plugin list, and it listens on 127.0.0.1 only. It runs as whoever starts it, root
// or not.
//
// # Promises
//
//   - Start returns when the node can be used: AMQP and the management API answer and a stream can
//     be declared, written and read. RabbitMQ accepts connections before its streams work.
//   - What is in Config.Dir survives Stop, Kill and the death of this process. The node's name does
//     not depend on the folder or the ports, so a folder can be moved and its ports can change.
//   - Nothing outlives us. The node and epmd are children of this process, and the kernel kills them
//     when it dies, however it dies (a broker crash: RabbitMQ recovers from it at the next start).
//   - One node a folder: a lock on the folder is inherited by the node, so a second Start waits until
//     the first node has really gone.
//
// # When things fail
//
// A start that fails leaves no process behind and says why, with the last lines the node wrote;
// all it wrote is in Dir/log. A node that dies by itself closes Exited and is not started again:
// that is for the caller to decide, with Restart.
package localbroker
