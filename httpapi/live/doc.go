// Package live pushes changes to those who watch: over server-sent events, or over a WebSocket.
//
// A hub computes what each topic shows, once for all viewers, whenever the view has changed. It
// works only while there are viewers. Every viewer gets frames: the topics that have changed since
// the last one. The id of a frame names a place, from which a viewer that comes back continues.
//
// # Promises
//
// A frame has the newest state of a topic. States between two frames may be left out. Events of
// single jobs are not left out, unless there are too many: then "missed" counts them.
//
// A slow viewer delays no other. One that does not read is cut off, and learns it when it is back.
//
// # Failures
//
// A topic that cannot be computed is null. An id of another process continues at the beginning.
// When the server stops, the session ends or an hour has passed, a last event says why.
package live
