package output

import (
	"bytes"
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestLiveLineIsRewrittenOnTerminal(t *testing.T) {
	var out bytes.Buffer
	l := &Live{w: &out, tty: true}
	l.set("one")
	l.Printf("log\n")
	l.set("two")
	l.end()
	l.Printf("after\n")
	require.Equal(t, "\r\x1b[Kone"+"\r\x1b[Klog\none"+"\r\x1b[Ktwo"+"\n"+"after\n", out.String())
}

func TestLiveLinesFollowEachOtherInPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := NewLive(&out)
		ctx, cancel := context.WithTimeout(t.Context(), 4*rewriteEvery)
		defer cancel()
		n := 0
		require.NoError(t, l.Follow(ctx, func(context.Context) string { n++; return []string{"", "one", "two"}[n] }))
		l.Printf("after\n")
		require.Equal(t, "one\ntwo\nafter\n", out.String())
	})
}

func TestLiveWritesRarelyInPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLive(&bytes.Buffer{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var pauses []time.Duration
		last := time.Now()
		require.NoError(t, l.Follow(ctx, func(context.Context) string {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			return "x"
		}))
		require.Equal(t, []time.Duration{rewriteEvery, 2 * rewriteEvery, 4 * rewriteEvery, 8 * rewriteEvery, repeatEvery}, pauses[:5])
		require.Len(t, pauses, 14)
	})
}

func TestLiveRewritesOftenOnTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Live{w: &bytes.Buffer{}, tty: true}
		ctx, cancel := context.WithTimeout(t.Context(), 10*rewriteEvery+rewriteEvery/2)
		defer cancel()
		n := 0
		require.NoError(t, l.Follow(ctx, func(context.Context) string { n++; return "x" }))
		require.Equal(t, 10, n)
	})
}

func TestIsTerminal(t *testing.T) {
	require.False(t, IsTerminal(&bytes.Buffer{}))
	f, err := os.Create(t.TempDir() + "/f")
	require.NoError(t, err)
	defer f.Close()
	require.False(t, IsTerminal(f))
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.False(t, IsTerminal(null), "no person reads what is written there")
	_, terminal := clitest.OpenTerminal(t, 80, 24)
	require.True(t, IsTerminal(terminal))
}
