package main

import (
	"context"
	"net/url"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// lookSettings are those of a command that asks one thing.
type lookSettings struct {
	flags.Client
	output.Result
}

// look asks for something and prints it: for people as show does, for programs as it came.
func look[T any](ctx context.Context, out output.Streams, s *lookSettings, path string, query url.Values, show func(*output.Printer, *T) error) error {
	body, err := s.APIClient().Do(ctx, apiclient.Request{Path: path, Query: query})
	if err != nil {
		return err
	}
	p := s.Printer(out)
	if p.Structured() {
		return p.Answer(body)
	}
	answer, err := apiclient.Decode[T](body)
	if err != nil {
		return err
	}
	return show(p, answer)
}

// lookAt asks for one thing and prints all that is known of it.
func (s *lookSettings) lookAt(ctx context.Context, out output.Streams, path string, query url.Values) error {
	body, err := s.APIClient().Do(ctx, apiclient.Request{Path: path, Query: query})
	if err != nil {
		return err
	}
	return s.Printer(out).Facts(body)
}
