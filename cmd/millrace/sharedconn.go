package main

import (
	"context"
	"sync"

	"github.com/millrace-jobs/millrace/broker"
)

// sharedConn is a connection for frequent short work, each time on new channels.
type sharedConn struct {
	dial func(context.Context) (*broker.Conn, error)

	mu     sync.Mutex
	conn   *broker.Conn // nil before the first use
	closed bool
}

// do calls work with the connection. It opens a new one if the connection was lost.
func (s *sharedConn) do(ctx context.Context, work func(*broker.Conn) error) error {
	conn, err := s.get(ctx)
	if err != nil {
		return err
	}
	return work(conn)
}

func (s *sharedConn) get(ctx context.Context) (*broker.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		select {
		case <-s.conn.Done():
			_ = s.conn.Close()
			s.conn = nil
		default:
			return s.conn, nil
		}
	}
	if s.closed {
		return nil, context.Canceled
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	s.conn = conn
	return conn, nil
}

// close closes the connection. It is not opened again.
func (s *sharedConn) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed = true; s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}
