package main

// scenarios are what each language is taken through, in the order of the table.
var scenarios = []scenario{
	{name: "happy", what: "producer, queues, schedule, worker, metrics, heartbeats, hooks", run: happy},
	{name: "producer", what: "refused, unreachable and invalid jobs are said to be", run: producerErrors},
	{name: "outcomes", what: "failures of all kinds become what they should", run: outcomes},
	{name: "middleware", what: "on both sides: around, changing, swallowing, failing", run: middleware},
	{name: "heartbeats", what: "what a worker says of itself, from its start to its end", run: heartbeats},
	{name: "retries", what: "a job is retried to its success, and to its death", run: retries},
	{name: "lanes", what: "quick jobs do not wait for slow ones; strict and weighted queues", run: lanes},
	{name: "priority", what: "the highest first", run: priority},
	{name: "hostile", what: "args come back byte for byte", run: hostile},
	{name: "large", what: "args of a megabyte", run: large},
	{name: "clocks", what: "jobs whose clock was wrong", run: clocks},
	{name: "confirm", what: "no acknowledgement before the retry is confirmed", run: confirm},
	{name: "control", what: "pause, resume, cancel, quiet and stop by message; paused before it starts", run: control},
	{name: "stop", what: "signals: quiet, stop, hand back", run: stop},
	{name: "connection", what: "the connection is killed in the middle of a job", run: connection},
	{name: "restart", what: "the broker restarts: producer and worker go on, nothing is lost", run: restart, alone: true},
	{name: "hosts", what: "of several hosts one is dead and others go away: producer and worker connect elsewhere", run: hosts},
	{name: "crash", what: "the broker's channels crash (541): what was not confirmed is published again", run: crash},
	{name: "tls", what: "TLS checks the name in the URL, not the address", run: secure},
	{name: "queues", what: "queues that exist are used as they are, quorum queues too; a missing one is made", run: queues},
	{name: "kill", what: "the worker is killed with jobs in flight: nothing is lost", run: kill},
	{name: "poison", what: "a job that kills its workers is given up, one that was peeked at is not", run: poison},
	{name: "crowd", what: "10,000 jobs by all producers to all workers at once", run: crowd, crowd: true},
}
