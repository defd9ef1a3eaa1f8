// Package connect opens what a sidecar needs of a broker: the management API and the streams. It
// also says which permissions a user needs, and what to do when the broker refuses one.
//
// # Promises
//
// The management API and the stream listener are used only if they belong to the broker that AMQP
// reaches. Two brokers on one host, or a container's port that leads elsewhere, would otherwise
// have their queues and streams mixed up.
//
// # When things fail
//
// A management API of another broker is a *broker.OtherBrokerError. A stream listener of another
// broker is ErrOtherJournal, which is believed only after it was found several times: retention
// removes records, and a node may learn of a new stream late. Where the two journals cannot be
// compared, as on a node without a replica, the listener is used.
package connect
