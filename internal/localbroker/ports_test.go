package localbroker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortsOfTwoNodesDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 20 {
		p, err := choosePorts(Config{})
		require.NoError(t, err)
		defer p.release()
		for _, port := range []int{p.amqp, p.management, p.stream, p.epmd, p.dist} {
			require.False(t, seen[port], "port %d was allocated twice", port)
			seen[port] = true
		}
	}
}

// A block is skipped if another program uses a port in it.
func TestPortsTakenByOthers(t *testing.T) {
	p, err := choosePorts(Config{})
	require.NoError(t, err)
	l, err := listen(p.stream)
	require.NoError(t, err)
	defer l.Close()
	require.False(t, p.takeBlock(Config{}))
	require.True(t, p.takeBlock(Config{StreamPort: p.stream}))

	q := ports{block: p.block}
	require.Error(t, q.reserve())
	p.release()
	require.NoError(t, q.reserve())
	require.NoError(t, q.reserve(), "reserving a block twice")
	q.release()

	free, err := FreePort(p.stream)
	require.NoError(t, err)
	require.Greater(t, free, p.stream)
	_, err = FreePort(1 << 16)
	require.ErrorContains(t, err, "no free port")
}
