// Command shop is a small web shop. A request enqueues the payment, which is retried while the bank
// is busy. A day after the payment the customer gets an e-mail.
//
// It needs a broker and Millrace (make up). The web server and the worker are one program, because
// the orders are in memory and not in a database:
//
//	go run ./examples/shop                                                # on port 8000
//	curl -d '{"email": "ann@example.com"}' http://127.0.0.1:8000/orders   # an order
//	curl http://127.0.0.1:8000/orders/1                                   # the state of the order
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

func main() {
	url := os.Getenv("MILLRACE_AMQP_URL") // if empty: amqp://guest:guest@127.0.0.1:5672/
	// A request must not wait for the broker longer than 2 seconds.
	client, err := millrace.NewClient(millrace.ClientConfig{URL: url, Timeout: 2 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	s := &shop{client: client}

	worker := millrace.NewWorker(millrace.WorkerConfig{URL: url, Queues: []string{"payments", "mail"}, Concurrency: 5})
	millrace.Handle(worker, s.charge, &millrace.HandlerOptions{Timeout: 30 * time.Second, RetryIn: untilRetry})
	millrace.Handle(worker, s.askForReview, nil)

	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.order)
	mux.HandleFunc("GET /orders/{number}", s.show)
	server := &http.Server{Addr: "127.0.0.1:" + cmp.Or(os.Getenv("SHOP_PORT"), "8000"), Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { log.Print(server.ListenAndServe()) }()
	if err := worker.RunWithSignals(context.Background()); err != nil { // until SIGTERM
		log.Fatal(err)
	}
	_ = server.Close()
}

// chargeArgs is the args of the job that charges the customer of an order.
type chargeArgs struct {
	Order int `json:"order"`
}

func (chargeArgs) Kind() string { return "Charge" }

func (chargeArgs) EnqueueOptions() millrace.EnqueueOptions {
	return millrace.EnqueueOptions{Queue: "payments", MaxAttempts: 11}
}

// reviewArgs is the args of the job that sends the e-mail.
type reviewArgs struct {
	Order int `json:"order"`
}

func (reviewArgs) Kind() string { return "AskForReview" }

func (reviewArgs) EnqueueOptions() millrace.EnqueueOptions {
	return millrace.EnqueueOptions{Queue: "mail", MaxAttempts: 6}
}

// bankBusy is the error of a bank that accepts no payments at the moment.
type bankBusy struct{ order int }

func (b bankBusy) Error() string { return fmt.Sprintf("order %d: try again later", b.order) }

// untilRetry returns a short wait while the bank is busy. Zero means the usual backoff.
func untilRetry(count int, err error, _ *millrace.RawJob) time.Duration {
	if busy := (bankBusy{}); errors.As(err, &busy) {
		return min(time.Second<<min(count, 10), 10*time.Minute)
	}
	return 0
}

// askBank stands in for a bank that is busy at first. A real bank gets the number of the order, so
// that it accepts each payment only once.
func askBank(order, attempt int) error {
	if attempt == 1 {
		return bankBusy{order}
	}
	return nil
}

// charge charges the customer of an order. A job may run twice, so charge first checks whether the
// order is paid.
func (s *shop) charge(ctx context.Context, job *millrace.Job[chargeArgs]) error {
	number := job.Args.Order
	if o, ok := s.orders.get(number); !ok || o.Paid {
		return nil
	}
	if err := askBank(number, job.Attempt); err != nil {
		return err
	}
	if _, err := s.client.EnqueueIn(ctx, 24*time.Hour, reviewArgs{number}, nil); err != nil {
		return err
	}
	s.orders.change(number, func(o *order) { o.Paid = true })
	log.Printf("order %d is paid", number)
	return nil
}

// askForReview sends the e-mail that asks for a review. It first records that the e-mail was sent:
// no e-mail is better than two.
func (s *shop) askForReview(_ context.Context, job *millrace.Job[reviewArgs]) error {
	number, first := job.Args.Order, false
	s.orders.change(number, func(o *order) { first, o.Mailed = !o.Mailed, true })
	if o, _ := s.orders.get(number); first {
		log.Printf("e-mail to %s about order %d", o.email, number)
	}
	return nil
}

// shop is the state that the requests of the web server and the jobs share.
type shop struct {
	client *millrace.Client
	orders orders
}

// order accepts an order.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	var body struct{ Email string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Email == "" {
		answer(w, http.StatusBadRequest, map[string]any{"error": `the body must be JSON with an "email"`})
		return
	}
	number := s.orders.add(body.Email)
	// The order was added first, because the worker must find it.
	if _, err := s.client.Enqueue(r.Context(), chargeArgs{number}, nil); err != nil {
		// A real shop enqueues such orders later.
		log.Printf("order %d waits for its payment: %v", number, err)
		answer(w, http.StatusServiceUnavailable, map[string]any{"order": number, "error": "we cannot take payments at the moment"})
		return
	}
	answer(w, http.StatusAccepted, map[string]any{"order": number})
}

// show returns an order.
func (s *shop) show(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.Atoi(r.PathValue("number"))
	if o, ok := s.orders.get(number); ok {
		answer(w, http.StatusOK, o)
		return
	}
	answer(w, http.StatusNotFound, map[string]any{"error": "there is no order " + r.PathValue("number")})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
