package streams

import "fmt"

// ask sends a request and waits for its response. It discards deliveries that come before the
// response.
func (l *link) ask(r *request) (*content, error) {
	id, err := l.start(r)
	if err != nil {
		return nil, err
	}
	for {
		f, err := l.read()
		if err != nil {
			return nil, err
		}
		if answer, ok := f.answers(r, id); ok {
			return answer, l.check(f, r)
		}
		if err := l.skip(f); err != nil {
			return nil, err
		}
	}
}

// start sends a request without waiting for its response.
func (l *link) start(r *request) (id uint32, err error) {
	l.mu.Lock()
	l.next++
	id = l.next
	l.mu.Unlock()
	return id, l.send(r.withID(id))
}

// answers reports whether the frame is the response to r. It consumes the correlation id, so only
// one request with this command may be open.
func (f frame) answers(r *request, id uint32) (*content, bool) {
	if f.command != r.command|response {
		return nil, false
	}
	return f.content, f.content.u32() == id
}

// check reads the response code. Every response but metadata begins with one.
func (l *link) check(f frame, r *request) error {
	if r.command == cmdMetadata {
		return nil
	}
	code := f.content.u16()
	if f.content.err != nil {
		return lost("reading: %w", f.content.err)
	}
	if err := codeError(code); err != nil {
		return err
	}
	if r.command == cmdPeerProperties || r.command == cmdSaslHandshake {
		return l.skip(f)
	}
	return nil
}

func codeError(code uint16) error {
	switch code {
	case codeOK:
		return nil
	case codeNoStream:
		return fmt.Errorf("streams: %w", ErrNoStream)
	case codeSaslFailure, codeVhostRefused, codeLoopbackOnly, codeAccessRefused:
		return fmt.Errorf("streams: %w (response code %d)", ErrRefused, code)
	case codeStreamNotAvailable:
		return lost("the stream is not available on this node (response code %d)", code)
	default:
		return lost("response code %d", code)
	}
}
