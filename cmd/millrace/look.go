package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
)

// lookSettings are those of a command that asks one thing.
type lookSettings struct {
	clientSettings

	JSON bool `name:"json" help:"Print the API's answer."`
}

// look asks for something and prints it: for people, or as it came.
func look[T any](ctx context.Context, out output, s *lookSettings, path string, query url.Values, print func(io.Writer, *T) error) error {
	body, err := s.client().do(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	if s.JSON {
		return printJSON(out.Out, body)
	}
	answer, err := readAnswer[T](body)
	if err != nil {
		return err
	}
	return print(out.Out, answer)
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
