package quickack_test

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/quickack"
)

func TestReadsAreUnchanged(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		peer, err := listener.Accept()
		if err != nil {
			return
		}
		defer peer.Close()
		_, _ = io.Copy(peer, peer)
	}()
	tcp, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	conn := quickack.New(tcp)
	defer conn.Close()
	for _, text := range []string{"before", "after"} {
		_, err = conn.Write([]byte(text))
		require.NoError(t, err)
		got := make([]byte, len(text))
		_, err = io.ReadFull(conn, got)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		conn.Begin()
	}
	require.NoError(t, conn.Close())
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestOtherConnections(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	conn := quickack.New(here)
	defer conn.Close()
	conn.Begin()
	go func() { _, _ = there.Write([]byte("a")) }()
	got := make([]byte, 1)
	_, err := conn.Read(got)
	require.NoError(t, err)
	require.Equal(t, "a", string(got))
}
