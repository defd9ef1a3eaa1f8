// Package messages delivers delayed messages: messages of applications that know nothing of jobs.
//
// A delayed message waits as a scheduled job of the class millrace.Message, whose only argument is
// the message. When the job is due, the leader puts it into the queue millrace.messages, as any
// job. A worker in each sidecar takes it from there, publishes the message to the application's
// exchange, and acknowledges the job when the broker has confirmed the message. So a delayed
// message has what every job has: the lists, cancellation, retries, the dead set, and the promise
// that it is delivered at least once.
//
// A message that no queue takes, whose exchange does not exist, or that the broker refuses, is a
// failed attempt. Only a message that cannot be read is given up at once.
package messages
