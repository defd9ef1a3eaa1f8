package ledger

import "time"

// A broker may never answer a publish: RabbitMQ forgets some when the node of their queue or of the
// journal stops. Where a queue does not answer, what it has open is set aside. A fire whose queue
// has answered later ones is passed over: it is set aside too.

// How long the broker may take to answer.
const (
	SilentAfter = 2 * time.Second  // after which a queue is silent
	GiveUpAfter = 30 * time.Second // after which it is decided what became of a fire
	QuietAfter  = time.Second      // after which nothing is fired, where nothing at all is answered
	watchEvery  = 500 * time.Millisecond
)

// Why what a publish did is void.
const (
	Nack     = "nack"
	NoAnswer = "no answer"
)

// answers is what is known of the broker's answers.
type answers struct {
	clock    time.Duration   // how long the epoch has run; a clock that is set does not move it
	watched  time.Duration   // when it was looked last what has no answer
	answered time.Duration   // when the newest answer came, or the window was drained
	journal  uint64          // the tag of the newest publish that the journal has
	numbered uint64          // the same, of those with a number
	waits    uint64          // the tag of the newest publish that only what follows it can decide
	asked    uint64          // the same, when a record was sent behind it
	gone     map[uint64]bool // the tags of what was given up on, and not answered since
	hole     uint64          // the oldest tag of these and of what is set aside, 0 if there is none
}

func newAnswers(gone map[uint64]bool) answers {
	a := answers{gone: map[uint64]bool{}}
	for tag := range gone {
		a.gone[tag] = true
		a.behind(tag)
	}
	return a
}

// Advance has the clock of the answers run.
func (a *answers) Advance(by time.Duration) { a.clock += by }

// Hole returns the tag of the oldest publish that was given up on or set aside, 0 if there is none.
func (a *answers) Hole() uint64 { return a.hole }

// MaxBehindHole is how many publishes may follow one that was never answered. The AMQP library
// keeps the answer to each of them as long as the channel lasts.
const MaxBehindHole = 1 << 20

// Worn reports whether so much has followed a publish without an answer that the epoch should end.
func (a *answers) Worn() bool { return a.hole != 0 && a.journal > a.hole+MaxBehindHole }

// GivenUp returns how many publishes were given up on, and not answered since.
func (a *answers) GivenUp() int { return len(a.gone) }

// behind notes a publish without an answer.
func (a *answers) behind(tag uint64) {
	if a.hole == 0 || tag < a.hole {
		a.hole = tag
	}
}
