// Command bare consumes a queue with amqp091-go alone. The Go client is measured against it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var s struct {
		Queues      []string `json:"queues"`
		Concurrency int      `json:"concurrency"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MILLRACE_WORKER")), &s); err != nil {
		return err
	}
	conn, err := amqp.Dial(os.Getenv("MILLRACE_AMQP_URL"))
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.Qos(s.Concurrency, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume("queue."+s.Queues[0], "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	for {
		select {
		case d, open := <-deliveries:
			if !open {
				return fmt.Errorf("the broker ended it")
			}
			if err := d.Ack(false); err != nil {
				return err
			}
		case <-stop:
			return nil
		}
	}
}
