package scheduler

// reading is a part of the journal that is read in the background. Its results may be used when it
// has ended.
type reading struct {
	done chan struct{}
	err  error // once done: why not all could be read
}

func newReading() *reading { return &reading{done: make(chan struct{})} }

func (r *reading) end(err error) {
	r.err = err
	close(r.done)
}

func (r *reading) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
