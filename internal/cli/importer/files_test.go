package importer

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesAreReadOneByOne(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	in := newLines(strings.NewReader("\xef\xbb\xbf{\"a\":1}\r\n\n  \n" + long + "\n{\"b\":2}"))
	for _, want := range []line{{1, []byte(`{"a":1}`), 12}, {4, []byte(long), 100<<10 + 1}, {5, []byte(`{"b":2}`), 7}} {
		got, err := in.next()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := in.next()
	require.ErrorIs(t, err, io.EOF)
	require.EqualValues(t, 12+1+3+100<<10+1+7, in.bytes)
}

// endless is a line without an end.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.left))
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= int64(n)
	return n, nil
}

func TestTooLongLinesAreNotKept(t *testing.T) {
	in := newLines(io.MultiReader(&endless{left: longestLine + 1}, strings.NewReader("\n{}\n")))
	got, err := in.next()
	require.NoError(t, err)
	require.True(t, got.tooLong())
	require.Empty(t, got.text)
	got, err = in.next()
	require.NoError(t, err)
	require.Equal(t, `{}`, string(got.text))
	require.EqualValues(t, 2, got.number)
}

func TestInputsThatFail(t *testing.T) {
	in := newLines(io.MultiReader(strings.NewReader("{}\n"), failing{}))
	_, err := in.next()
	require.NoError(t, err)
	_, err = in.next()
	require.EqualError(t, err, "read line 2: the disk is gone")
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func TestResumeFileNamesOneInput(t *testing.T) {
	const text = "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n"
	path := filepath.Join(t.TempDir(), "resume")
	in := newLines(strings.NewReader(text))
	for range 2 {
		_, err := in.next()
		require.NoError(t, err)
	}
	p := Progress{Name: "shop", Lines: in.number, Bytes: in.bytes, SHA256: in.checksum(), Entered: 1, Refused: 1}
	require.NoError(t, p.save(path))
	done, err := Load(path, "shop")
	require.NoError(t, err)
	require.Equal(t, p, done)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	require.NoError(t, err)
	require.Empty(t, files, "no other file is left")

	again := newLines(strings.NewReader(text))
	require.NoError(t, again.skip(&done))
	got, err := again.next()
	require.NoError(t, err)
	require.Equal(t, `{"c":3}`, string(got.text))
	require.EqualValues(t, 3, got.number)

	require.ErrorContains(t, newLines(strings.NewReader(strings.ToUpper(text))).skip(&done), "lines 1 to 2 of the input are not those")
	require.ErrorContains(t, newLines(strings.NewReader("{}")).skip(&done), "the input has 2 bytes")
	_, err = Load(path, "other")
	require.ErrorContains(t, err, `is the resume file of the import "shop"`)
	require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
	_, err = Load(path, "shop")
	require.ErrorContains(t, err, "is no resume file")
	begin, err := Load(path+"2", "shop")
	require.NoError(t, err)
	require.Equal(t, Progress{Name: "shop"}, begin)
}

func TestRejectedFileEndsWhereTheResumeFileSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rejected")
	first := line{number: 1, text: []byte(`{"n":12345678901234567890,"t":"<&>"}`)}
	r, err := openRejected(path, 0)
	require.NoError(t, err)
	require.NoError(t, r.write([]Refusal{first.refusal(errors.New("no"))}))
	kept := r.written()
	second := line{number: 2, text: []byte(`{"broken`)}
	require.NoError(t, r.write([]Refusal{second.refusal(errors.New("too"))}))
	require.NoError(t, r.close())

	r, err = openRejected(path, kept)
	require.NoError(t, err)
	require.NoError(t, r.write([]Refusal{second.refusal(errors.New("again"))}))
	require.NoError(t, r.close())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `{"line":1,"reason":"no","input":{"n":12345678901234567890,"t":"<&>"}}`+"\n"+`{"line":2,"reason":"again","input":"{\"broken"}`+"\n", string(text))
	_, err = openRejected(path, 10_000)
	require.ErrorContains(t, err, "name the same file as before")
}
