package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// lookSettings are those of a command that asks one thing.
type lookSettings struct {
	clientSettings
	output.Result
}

// look asks for something and prints it: for people as show does, for programs as it came.
func look[T any](ctx context.Context, out output.Streams, s *lookSettings, path string, query url.Values, show func(*output.Printer, *T) error) error {
	body, err := s.client().do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	p := s.Printer(out)
	if p.Structured() {
		return p.Answer(body)
	}
	answer, err := readAnswer[T](body)
	if err != nil {
		return err
	}
	return show(p, answer)
}

// lookAt asks for one thing and prints all that is known of it.
func (s *lookSettings) lookAt(ctx context.Context, out output.Streams, path string, query url.Values) error {
	body, err := s.client().do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	return s.Printer(out).Facts(body)
}

// readAnswer reads an answer. A member of a record that is not what it should be leaves its cell empty, and nothing else.
func readAnswer[T any](body []byte) (*T, error) {
	var answer T
	err := json.Unmarshal(body, &answer)
	var other *json.UnmarshalTypeError
	if err != nil && !errors.As(err, &other) {
		return nil, unreadable(err)
	}
	return &answer, nil
}
