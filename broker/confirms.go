package broker

import (
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Confirm is the broker's word on one published message: Ack, it is where it was routed to; not Ack, some queue did not take it, or, if it was
// Returned to a strict publisher, there was none.
type Confirm struct {
	Tag      uint64
	Ack      bool
	Returned bool
}

// confirms hands confirms from the connection, which must not wait, to a reader, who may.
//
// The library's own listener reports in the order of the tags, so that one queue that never confirms would hide the confirms of all
// messages behind it, and its loss with the connection would put them all in doubt. So each message is waited for by itself.
type confirms struct {
	out     chan []Confirm
	discard chan struct{} // closed when nobody will read out any more
	wake    chan struct{}

	mu      sync.Mutex
	queue   []Confirm
	waiting int // published and not settled
	halted  bool
	ended   bool
}

func newConfirms() *confirms {
	return &confirms{out: make(chan []Confirm), discard: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// expect announces one message. It must come before the message is published, or its confirm could come after the end.
func (c *confirms) expect() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.waiting++
	return true
}

// wait reports the confirm of a message that expect announced. A nil answer stands for a message that was not published. returned is asked
// once, when its confirm has come.
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
			back = back && ack // LavinMQ returns what a queue refused, too
			c.settle(&Confirm{Tag: answer.DeliveryTag, Ack: ack && !back, Returned: back})
		} else {
			c.settle(nil)
		}
	}()
}

// outcome tells a nack from a confirm that never came: the library reports both as not acknowledged, but has marked the channel as
// closed before it does the second.
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

// halt has no confirm reported that comes from now on.
func (c *confirms) halt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halted = true
}

// end says that nothing will be expected any more. What is still waited for is settled by the library as the channel ends.
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

// run hands out until all is settled and read, or until nobody will read any more. It leaves out open: a closed channel is always
// ready, and would starve what else a reader waits for.
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
