package main

import (
	"context"
	"sync"

	"github.com/millrace-jobs/millrace/broker"
)

// lender keeps one connection for what is done often, each time on channels of its own.
type lender struct {
	dial func(context.Context) (*broker.Conn, error)

	mu     sync.Mutex
	conn   *broker.Conn // nil before the first use
	closed bool
}

// lend has something done on the connection, on a new one if it was lost.
func (l *lender) lend(ctx context.Context, do func(*broker.Conn) error) error {
	conn, err := l.get(ctx)
	if err != nil {
		return err
	}
	return do(conn)
}

func (l *lender) get(ctx context.Context) (*broker.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		select {
		case <-l.conn.Done():
			_ = l.conn.Close()
			l.conn = nil
		default:
			return l.conn, nil
		}
	}
	if l.closed {
		return nil, context.Canceled
	}
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	l.conn = conn
	return conn, nil
}

// close ends the connection for good.
func (l *lender) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed = true; l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}
