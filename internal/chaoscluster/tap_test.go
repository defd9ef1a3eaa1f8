package main

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A tap passes on what both sides send, unless it is frozen, and ends with its connections.
func TestTap(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	p, err := newTap(newTruth(), 0, 0, echo.Addr().String())
	require.NoError(t, err)
	c, err := net.Dial("tcp", p.address())
	require.NoError(t, err)
	defer c.Close()
	say := func(text string) { _, err := io.WriteString(c, text); require.NoError(t, err) }
	hear := func(limit time.Duration) (string, error) {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(limit)))
		buffer := make([]byte, 100)
		n, err := c.Read(buffer)
		return string(buffer[:n]), err
	}
	say("one")
	text, err := hear(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "one", text)

	p.freeze()
	say("two")
	_, err = hear(100 * time.Millisecond)
	require.ErrorContains(t, err, "timeout")
	p.thaw()
	text, err = hear(10 * time.Second)
	require.NoError(t, err)
	require.Equal(t, "two", text)

	require.NoError(t, p.close())
	_, err = hear(10 * time.Second)
	require.Error(t, err)
	_, err = net.Dial("tcp", p.address())
	require.Error(t, err)
}
