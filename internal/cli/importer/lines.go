package importer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/millrace-jobs/millrace/wire"
)

// longestLine is the longest line that is read, in bytes. Longer ones are refused.
const longestLine = wire.MaxRecord

// line is one line of the input.
type line struct {
	number int64
	text   []byte // without white space around it; empty if the line is too long
	size   int64  // bytes of the line, with its end
}

func (l *line) tooLong() bool { return l.size > longestLine }

// lines reads the input line by line, and keeps a checksum of all that was read.
type lines struct {
	from   *bufio.Reader
	sum    hash.Hash
	number int64
	bytes  int64
}

func newLines(from io.Reader) *lines {
	return &lines{from: bufio.NewReaderSize(from, 64<<10), sum: sha256.New()}
}

// next returns the next line that is not empty. At the end of the input it returns io.EOF.
func (l *lines) next() (line, error) {
	for {
		read, err := l.read()
		if err != nil {
			return line{}, err
		}
		if len(read.text) > 0 || read.tooLong() {
			return read, nil
		}
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// read reads one line. Of a line that is too long it keeps nothing.
func (l *lines) read() (line, error) {
	read := line{number: l.number + 1}
	for {
		part, err := l.from.ReadSlice('\n')
		l.sum.Write(part)
		read.size += int64(len(part))
		switch {
		case read.tooLong():
			read.text = nil
		default:
			read.text = append(read.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return read, fmt.Errorf("read line %d: %w", read.number, err)
		case err != nil && read.size == 0:
			return read, io.EOF
		}
		break
	}
	l.number++
	l.bytes += read.size
	if l.number == 1 {
		read.text = bytes.TrimPrefix(read.text, byteOrderMark)
	}
	read.text = bytes.TrimSpace(read.text)
	return read, nil
}

// checksum returns the checksum of everything that was read.
func (l *lines) checksum() string { return hex.EncodeToString(l.sum.Sum(nil)) }

// skip reads the lines that an earlier run has entered.
func (l *lines) skip(done *Progress) error {
	n, err := io.CopyN(l.sum, l.from, done.Bytes)
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("the input has %d bytes, and the resume file says that %d of it were imported: give the same input, or another resume file", n, done.Bytes)
	case err != nil:
		return fmt.Errorf("read the lines that were imported before: %w", err)
	case l.checksum() != done.SHA256:
		return fmt.Errorf("lines 1 to %d of the input are not those that were imported: give the same input, or another resume file", done.Lines)
	}
	l.number, l.bytes = done.Lines, done.Bytes
	return nil
}
