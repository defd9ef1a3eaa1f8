package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
)

// lookSettings are those of a command that asks one thing.
type lookSettings struct {
	clientSettings
	resultSettings
}

// look asks for something and prints it: for people as show does, for programs as it came.
func look[T any](ctx context.Context, out output, s *lookSettings, path string, query url.Values, show func(*printer, *T) error) error {
	body, err := s.client().do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	p := s.printer(out)
	if p.whole() {
		return p.answer(body)
	}
	answer, err := readAnswer[T](body)
	if err != nil {
		return err
	}
	return show(p, answer)
}

// lookAt asks for one thing and prints all that is known of it.
func (s *lookSettings) lookAt(ctx context.Context, out output, path string, query url.Values) error {
	body, err := s.client().do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	return s.printer(out).facts(body)
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
