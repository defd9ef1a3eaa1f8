package main

import (
	"errors"
	"log"
	"os"

	amqp "github.com/rabbitmq/amqp091-go"
)

// The variables that section 3.6 uses and leaves to the reader.
var (
	hostname = "worker-01"
	channel  *amqp.Channel
	job      = struct{ Class string }{"SendEmailJob"}
)

func executeJob(body []byte) error {
	if len(body) == 0 {
		return errors.New("there is no job")
	}
	return nil
}

// main runs a job that succeeds and one that fails.
func main() {
	connection, err := amqp.Dial(os.Getenv("AMQP_URL"))
	if err != nil {
		log.Fatal(err)
	}
	channel, err = connection.Channel()
	if err != nil {
		log.Fatal(err)
	}
	processJob(amqp.Delivery{Body: []byte("{}")})
	processJob(amqp.Delivery{})
	if err := connection.Close(); err != nil {
		log.Fatal(err)
	}
}
