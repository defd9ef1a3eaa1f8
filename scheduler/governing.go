package scheduler

// governing says where the jobs go that clients publish for a queue.
type governing struct {
	queue  string
	turn   int64
	state  string // as the view has it
	leaves bool   // it is governed no longer: they go to the queue itself
	capped bool   // they may go to jobs.full some day
	full   bool   // they do now
}

// restated is a state in which a queue was found. An empty one says that it has left.
type restated struct {
	queue string
	turn  int64
	state string
}
