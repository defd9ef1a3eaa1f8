package broker

import (
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
// all of them in doubt. So a goroutine waits for each message.
type confirms struct {
	out     chan []Confirm
	discard chan struct{} // closed when out has no reader any more
	wake    chan struct{}

	mu      sync.Mutex
	queue   []Confirm
	waiting int // published and not answered
	halted  bool
	ended   bool
}

func newConfirms() *confirms {
	return &confirms{out: make(chan []Confirm), discard: make(chan struct{}), wake: make(chan struct{}, 1)}
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

// wait reports the confirm of a message that expect announced. answer is nil if the message was not
// published. wait calls returned once, after the confirm.
func (c *confirms) wait(ch *amqp.Channel, answer *amqp.DeferredConfirmation, returned func() bool) {
	if answer == nil {
		returned()
		c.settle(nil)
		return
	}
	go func() {
		<-answer.Done()
		back := returned()
		if known, ack := outcome(ch, answer); known {
			back = back && ack // LavinMQ also returns what a queue refused
			c.settle(&Confirm{Tag: answer.DeliveryTag, Ack: ack && !back, Returned: back})
		} else {
			c.settle(nil)
		}
	}()
}

// outcome distinguishes a nack from a confirm that never came. The library reports both as not
// acknowledged, but marks the channel as closed before it reports the second.
func outcome(ch *amqp.Channel, answer *amqp.DeferredConfirmation) (known, ack bool) {
	ack = answer.Acked()
	return ack || !ch.IsClosed(), ack
}

func (c *confirms) settle(confirm *Confirm) {
	c.mu.Lock()
	c.waiting--
	if confirm != nil && !c.halted {
		c.queue = append(c.queue, *confirm)
	}
	c.mu.Unlock()
	c.poke()
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
	c.ended = true
	c.mu.Unlock()
	c.poke()
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
		batch, last := c.take()
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

func (c *confirms) take() (batch []Confirm, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch, c.queue = c.queue, nil
	return batch, c.ended && c.waiting == 0
}
