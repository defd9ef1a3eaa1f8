// Package queues knows the job queues, as the broker shows them.
//
// It is no fold: what waits in a queue is known to the broker alone. There is one snapshot for all
// clients. It is made when a client asks and the last is over two seconds old. Without clients the
// broker is not asked. Without the management API the queues that are known by name are declared
// passively, which shows how many messages wait and how many consumers there are, and nothing else.
//
// How long the oldest job has been waiting is exact where the broker says when the head of the
// queue was published. Elsewhere it is at least the time for which the queue was seen to be neither
// empty nor served. It is never found out by taking a job and putting it back.
package queues
