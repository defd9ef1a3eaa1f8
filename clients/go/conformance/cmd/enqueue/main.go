// Command enqueue enqueues jobs with the Go client and with amqp091-go alone, for the benchmark of
// enqueueing.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

type settings struct {
	Queue  string `json:"queue"`
	Jobs   int    `json:"jobs"`
	AtOnce int    `json:"at_once"`
	Rounds int    `json:"rounds"`
}

type times struct {
	Bare    float64 `json:"bare"`
	Library float64 `json:"library"`
}

type program struct {
	settings
	ch     *amqp.Channel
	client *millrace.Client
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var p program
	if err := json.Unmarshal([]byte(os.Getenv("MILLRACE_ENQUEUE")), &p.settings); err != nil {
		return err
	}
	url := os.Getenv("MILLRACE_AMQP_URL")
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	if p.ch, err = conn.Channel(); err != nil {
		return err
	}
	if err := p.ch.Confirm(false); err != nil {
		return err
	}
	if p.client, err = millrace.NewClient(millrace.ClientConfig{URL: url}); err != nil {
		return err
	}
	defer p.client.Close()
	out := json.NewEncoder(os.Stdout)
	for range p.Rounds {
		var single, bulk times
		for _, m := range []struct {
			took *float64
			work func() error
		}{{&single.Bare, p.bare}, {&single.Library, p.single}, {&bulk.Bare, p.bareBulk}, {&bulk.Library, p.bulk}} {
			begun := time.Now()
			if err := m.work(); err != nil {
				return err
			}
			*m.took = time.Since(begun).Seconds()
		}
		if err := out.Encode(map[string]times{"single": single, "bulk": bulk}); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) publish(n int) (*amqp.DeferredConfirmation, error) {
	now := time.Now()
	at, jid := float64(now.UnixMicro())/1e6, fmt.Sprintf("%032x", n)
	body := fmt.Appendf(nil, `{"jid":%q,"class":"Noop","args":[%d,"some text"],"queue":%q,"created_at":%f,"enqueued_at":%f,"retry":25}`, jid, n, p.Queue, at, at)
	return p.ch.PublishWithDeferredConfirm("jobs.direct", p.Queue, true, false, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: jid, Type: "Noop", Timestamp: now, Body: body,
	})
}

func (p *program) bare() error {
	for n := range p.Jobs {
		confirm, err := p.publish(n)
		if err != nil {
			return err
		}
		confirm.Wait()
	}
	return nil
}

func (p *program) bareBulk() error {
	for begin := 0; begin < p.Jobs; begin += p.AtOnce {
		var confirms []*amqp.DeferredConfirmation
		for n := range p.AtOnce {
			confirm, err := p.publish(begin + n)
			if err != nil {
				return err
			}
			confirms = append(confirms, confirm)
		}
		for _, confirm := range confirms {
			confirm.Wait()
		}
	}
	return nil
}

func (p *program) single() error {
	for n := range p.Jobs {
		if _, err := p.client.Enqueue(context.Background(), millrace.Args("Noop", n, "some text"), &millrace.EnqueueOptions{Queue: p.Queue}); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) bulk() error {
	for begin := 0; begin < p.Jobs; begin += p.AtOnce {
		var jobs []millrace.EnqueueParams
		for n := range p.AtOnce {
			jobs = append(jobs, millrace.EnqueueParams{Args: millrace.Args("Noop", begin+n, "some text"), Options: millrace.EnqueueOptions{Queue: p.Queue}})
		}
		if _, err := p.client.EnqueueBulk(context.Background(), jobs); err != nil {
			return err
		}
	}
	return nil
}
