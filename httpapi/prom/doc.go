// Package prom exports metrics to Prometheus: what is known of jobs, queues, worker processes,
// streams and leadership, and the requests of the API.
//
// # Promises
//
// Values are read when Prometheus asks, and nothing on that path scans a stream. The number of
// series is bounded: requests are counted by route, never by path, and there are limits for error
// classes, queues and processes.
//
// # Failures
//
// A value that cannot be found out is left out, and the others are there. broker_connected and
// index_ready say how far they can be relied on.
package prom
