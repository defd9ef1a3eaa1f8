package crew

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// written returns a file with these lines, whose times are one second apart.
func written(t *testing.T, lines ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "lines")
	var text strings.Builder
	for i, line := range lines {
		f := strings.Fields(line) // what, worker, attempt, key, how
		text.WriteString(strings.Join(append(f[:4:4], append([]string{fmt.Sprint(i)}, f[4:]...)...), "\t") + "\n")
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

func work(t *testing.T, lines ...string) *Work {
	t.Helper()
	w, err := ReadWork(written(t, lines...))
	require.NoError(t, err)
	return w
}

func TestJobsOfAKeyAreCounted(t *testing.T) {
	w := work(t, "begins w1 a/0 k first", "begins w2 b/0 k first", "begins w3 c/0 other first", "ends w1 a/0 k", "begins w1 d/0 k first")
	require.Equal(t, 2, w.Most)
	require.Equal(t, 3, work(t, "begins w1 a/0 k first", "begins w2 b/0 k first", "begins w3 c/0 k first").Most)
	require.Equal(t, 1, work(t, "begins w1 a/0 k first", "lost w1 - -", "begins w2 b/0 k first").Most, "a worker that died runs nothing")
	require.Equal(t, 1, work(t, "begins w1 a/0 k first", "begins w2 a/0 k again").Most, "both run the same job")
}

func TestJobThatEndedMustNotBeginAgain(t *testing.T) {
	ended := []string{"begins w1 a/0 k first", "ends w1 a/0 k", "confirmed w1 a/0 k"}
	require.Empty(t, work(t, ended...).Again)
	require.Equal(t, []string{"a/0"}, work(t, append(ended, "begins w2 a/0 k again")...).Again)
	died := []string{"begins w1 a/0 k first", "ends w1 a/0 k", "lost w1 - -", "dropped w2 a/0 k"}
	require.Empty(t, work(t, died...).Missing([]string{"a"}), "its worker died before it wrote down that the end was confirmed")
	require.Equal(t, []string{"a/0"}, work(t, append(died, "begins w3 a/0 k again")...).Again)
}

func TestJobThatBeginsAgainMustHaveComeAgain(t *testing.T) {
	w := work(t, "begins w1 a/0 k first", "lost w1 - -", "begins w2 a/0 k again")
	require.Empty(t, w.Twice)
	require.Equal(t, 1, w.Repeats)
	require.Equal(t, []string{"a/0"}, work(t, "begins w1 a/0 k first", "begins w2 a/0 k first").Twice)
}

func TestLateEndsDoNotCount(t *testing.T) {
	late := []string{"begins w1 a/0 k first", "begins w2 a/0 k again", "ends w1 a/0 k", "confirmed w1 a/0 k"}
	require.Equal(t, []string{"a"}, work(t, late...).Missing([]string{"a"}), "the second worker still has it")
	require.Empty(t, work(t, append(late, "lost w2 - -", "begins w3 a/0 k again")...).Again)
}

func TestRetriesAreNotDone(t *testing.T) {
	failed := []string{"begins w1 a/0 k first", "ends w1 a/0 k", "failed w1 a/0 k", "confirmed w1 a/0 k"}
	require.Equal(t, []string{"a", "b"}, work(t, failed...).Missing([]string{"a", "b"}))
	require.Empty(t, work(t, append(failed, "begins w1 a/1 k first", "ends w1 a/1 k", "confirmed w1 a/1 k")...).Missing([]string{"a"}))
}

func TestJobThatRanTwiceMayHaveTwoRetries(t *testing.T) {
	retries := []string{"begins w2 a/1 k first", "ends w2 a/1 k", "confirmed w2 a/1 k", "begins w2 a/1 k first"}
	died := work(t, append([]string{"begins w1 a/0 k first", "ends w1 a/0 k", "lost w1 - -", "begins w2 a/0 k again", "failed w2 a/0 k"}, retries...)...)
	require.Empty(t, append(died.Again, died.Twice...))
	lived := work(t, append([]string{"begins w1 a/0 k first", "failed w1 a/0 k"}, retries...)...)
	require.Equal(t, []string{"a/1"}, lived.Again)
	require.Equal(t, []string{"a/1"}, lived.Twice)
}

func TestJobsOfAKeyThatOverlap(t *testing.T) {
	a := []string{"begins w1 a/0 k first", "ends w1 a/0 k"}
	require.Empty(t, work(t, append(a, "begins w2 b/0 k first")...).Overlaps())
	require.Len(t, work(t, append(a, "begins w2 b/0 k first", "begins w1 a/1 k first", "ends w1 a/1 k")...).Overlaps(), 1, "a was not finished when b began")
	require.Len(t, work(t, "begins w1 a/0 k first", "begins w2 b/0 k first").Overlaps(), 1, "a has not ended")
}

func TestUniqueJobsAreJudged(t *testing.T) {
	s := &Source{sure: []string{"ran", "duplicate", "lost", "liar"}, answers: map[string]wire.Reply{
		"ran": {Status: wire.StatusCreated}, "duplicate": {Status: wire.StatusOK, DuplicateOf: "ran"}, "lost": {Status: wire.StatusCreated}}}
	v, err := s.Judge(work(t, "begins w1 ran/0 k first", "ends w1 ran/0 k", "begins w1 liar/0 k first", "ends w1 liar/0 k"), func(jid string) (string, error) {
		return map[string]string{"duplicate": "ran", "liar": "ran"}[jid], nil
	})
	require.NoError(t, err)
	require.Equal(t, Verdict{Lost: []string{"lost"}, Wrong: []string{"lost", "liar"}, Duplicates: 2}, v)
}

func TestGovernedJobsAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	lines := []string{"sure\ta", "sure\tb", "sure\tc", "sure\td", "got\ta\tplain\tplain", "got\ta\tplain\tplain", // the broker gave it out again
		"got\tb\tplain\tplain", "got\tb\tfired\t1/7", "got\tc\tfired\t1/8", "got\tc\trefired\t2/1", "got\tx\tfired\t1/9", "sure\tunfinished"}
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
	g, err := ReadGoverned(path)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c", "d"}, g.Sure, "the last line is not complete")
	require.Equal(t, []string{"d"}, g.Missing())
	require.Equal(t, []string{"b [plain 1/7]"}, g.Twice())
	require.Equal(t, 1, g.Refired)
}

func TestNothingIsWrittenDownYet(t *testing.T) {
	w, err := ReadWork(filepath.Join(t.TempDir(), "none"))
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, w.Missing([]string{"a"}))
	_, err = ReadWork(t.TempDir())
	require.Error(t, err)
}
