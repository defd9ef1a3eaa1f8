package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// between is the pause after each answer, so that other processes get the machine too.
const between = 2 * time.Millisecond

// main reads one address per line. For each it writes how many nanoseconds the answer took, and how
// many of them the handler reports as its own.
func main() {
	if err := ask(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "asker:", err)
		os.Exit(1)
	}
}

func ask(from io.Reader, to io.Writer) (err error) {
	out := bufio.NewWriter(to)
	defer func() { err = errors.Join(err, out.Flush()) }()
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		begin := time.Now()
		handler, err := fetch(lines.Text())
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, time.Since(begin).Nanoseconds(), handler.Nanoseconds()); err != nil {
			return err
		}
		time.Sleep(between)
	}
	return lines.Err()
}

func fetch(url string) (handler time.Duration, err error) {
	resp, err := http.Get(url) //nolint:noctx // the process that started this one ends it
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, err
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, resp.Status)
	}
	var ms float64
	if _, err := fmt.Sscanf(resp.Header.Get("Server-Timing"), "handler;dur=%f", &ms); err != nil {
		return 0, fmt.Errorf("%s: Server-Timing: %w", url, err)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}
