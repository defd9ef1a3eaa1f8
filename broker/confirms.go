package broker

import (
	"slices"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Confirm is the broker's answer to one published message. Ack means that every queue to which it
// was routed has it. Otherwise a queue refused it or, if Returned is set, it was routed to no
// queue. Only a strict publisher sets Returned.
type Confirm struct {
	Tag      uint64
	Ack      bool
	Returned bool
}

// confirms passes confirms from the connection, which must not wait, to a reader, which may.
//
// The library's own listener reports confirms in the order of the tags. There, a queue that never
// confirms would hide the confirms of all later messages, and the loss of the connection would put
// all of them in doubt. So each message is asked for its own answer, whenever the library has
// handled what the broker sent.
type confirms struct {
	ch      *amqp.Channel
	out     chan []Confirm
	discard chan struct{} // closed when out has no reader any more
	wake    chan struct{}

	mu      sync.Mutex
	queue   []Confirm
	open    []awaited // published and not answered
	waiting int       // the same number, with those that are being published
	halted  bool
	ended   bool
}

// awaited is a message whose answer is awaited. returned is called once, after the answer.
type awaited struct {
	answer   *amqp.DeferredConfirmation
	returned func() bool
}

func newConfirms(ch *amqp.Channel) *confirms {
	return &confirms{ch: ch, out: make(chan []Confirm), discard: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// expect announces one message. It must be called before the message is published, or the confirm
// could come after the end. It returns false if the channel has ended.
func (c *confirms) expect() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.waiting++
	return true
}

// wait has the confirm of a message reported that expect announced. answer is nil if the message
// was not published.
func (c *confirms) wait(answer *amqp.DeferredConfirmation, returned func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer == nil {
		returned()
		c.waiting--
		c.poke()
		return
	}
	c.open = append(c.open, awaited{answer, returned})
	switch {
	case c.ended:
		go c.awaitEnd([]awaited{c.open[len(c.open)-1]})
		c.open = c.open[:len(c.open)-1]
	case isDone(answer): // the answer came before the message was in open
		c.take()
	}
}

// look takes the answers that have come. The connection calls it when the library has handled
// everything that the broker sent. It does not wait.
func (c *confirms) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take()
}

// take moves what is answered from open to the queue. The caller holds c.mu.
func (c *confirms) take() {
	before := len(c.open)
	c.open = slices.DeleteFunc(c.open, func(a awaited) bool {
		if !isDone(a.answer) {
			return false
		}
		c.settle(a)
		return true
	})
	if len(c.open) < before {
		c.poke()
	}
}

func isDone(answer *amqp.DeferredConfirmation) bool {
	select {
	case <-answer.Done():
		return true
	default:
		return false
	}
}

// settle queues an answer. The caller holds c.mu.
func (c *confirms) settle(a awaited) {
	c.waiting--
	back := a.returned()
	known, ack := outcome(c.ch, a.answer)
	if !known || c.halted {
		return
	}
	back = back && ack // LavinMQ also returns what a queue refused
	c.queue = append(c.queue, Confirm{Tag: a.answer.DeliveryTag, Ack: ack && !back, Returned: back})
}

// awaitEnd waits for the answers that the library gives when the channel has ended, at the latest.
func (c *confirms) awaitEnd(open []awaited) {
	for _, a := range open {
		<-a.answer.Done()
		c.mu.Lock()
		c.settle(a)
		c.mu.Unlock()
	}
	c.poke()
}

// outcome distinguishes a nack from a confirm that never came. The library reports both as not
// acknowledged, but marks the channel as closed before it reports the second.
func outcome(ch *amqp.Channel, answer *amqp.DeferredConfirmation) (known, ack bool) {
	ack = answer.Acked()
	return ack || !ch.IsClosed(), ack
}

// halt discards all confirms that come from now on.
func (c *confirms) halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halted = true
}

// end announces that no more messages will be expected. The library settles the open ones when the
// channel ends.
func (c *confirms) end() {
	c.mu.Lock()
	open := c.open
	c.ended, c.open = true, nil
	c.mu.Unlock()
	go c.awaitEnd(open)
}

func (c *confirms) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run hands out confirms until all are settled and read, or until out has no reader any more. It
// does not close out: a closed channel is always ready, and would starve the other channels of a
// reader.
func (c *confirms) run(closed <-chan struct{}) {
	for {
		batch, last := c.next()
		if len(batch) > 0 {
			select {
			case c.out <- batch:
			case <-c.discard:
				return
			case <-closed:
				return
			}
		}
		if last {
			return
		}
		select {
		case <-c.wake:
		case <-c.discard:
			return
		case <-closed:
			return
		}
	}
}

func (c *confirms) next() (batch []Confirm, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch, c.queue = c.queue, nil
	return batch, c.ended && c.waiting == 0
}
