package gate

// Queue is what a queue takes, besides what limits say.
type Queue struct {
	Ahead    int64 // how many jobs may hold slots; 0: any number
	Closed   bool  // none is to fire
	Governed bool  // it is about all jobs of the queue, and not only about those that a rate counts
}

// governed returns those queues of which all jobs are counted.
func governed(all map[string]Queue) map[string]bool {
	found := map[string]bool{}
	for name, q := range all {
		if q.Governed {
			found[name] = true
		}
	}
	return found
}
