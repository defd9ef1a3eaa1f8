package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Refusal is a line that was not entered.
type Refusal struct {
	Line   int64           `json:"line"`
	Reason string          `json:"reason"`
	Input  json.RawMessage `json:"input,omitempty"` // the line, as a text if it is not JSON
}

func (r *Refusal) Error() string { return fmt.Sprintf("line %d: %s", r.Line, r.Reason) }

// refusal returns a line as one that is refused.
func (l *line) refusal(reason error) Refusal {
	r := Refusal{Line: l.number, Reason: reason.Error()}
	switch {
	case len(l.text) == 0:
	case json.Valid(l.text):
		r.Input = l.text
	default:
		r.Input = encode(string(l.text))
	}
	return r
}

// rejected is the file of refused lines. A nil *rejected drops them.
type rejected struct {
	file *os.File
	size int64
}

// openRejected opens the file, and cuts off what was written after the resume file.
func openRejected(path string, size int64) (*rejected, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	before, err := file.Stat()
	if err == nil && before.Size() < size {
		err = fmt.Errorf("%s has %d bytes, and the resume file says %d: name the same file as before", path, before.Size(), size)
	}
	if err == nil {
		err = file.Truncate(size)
	}
	if err == nil {
		_, err = file.Seek(size, io.SeekStart)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &rejected{file: file, size: size}, nil
}

// write appends refused lines, and returns when the disk has them.
func (r *rejected) write(all []Refusal) error {
	if r == nil || len(all) == 0 {
		return nil
	}
	var text []byte
	for i := range all {
		text = append(append(text, refusalText(&all[i])...), '\n')
	}
	n, err := r.file.Write(text)
	r.size += int64(n)
	return errors.Join(err, r.file.Sync())
}

// refusalText is json.Marshal that keeps the bytes of the line.
func refusalText(r *Refusal) []byte {
	text := fmt.Appendf(nil, `{"line":%d,"reason":%s`, r.Line, encode(r.Reason))
	if r.Input != nil {
		text = append(append(text, `,"input":`...), r.Input...)
	}
	return append(text, '}')
}

func (r *rejected) written() int64 {
	if r == nil {
		return 0
	}
	return r.size
}

func (r *rejected) close() error {
	if r == nil {
		return nil
	}
	return r.file.Close()
}
