package httpapi

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// Ways in which the server finds out who somebody is.
const (
	AuthBroker = "broker" // the broker's users
	AuthToken  = "token"  // tokens of a file
	AuthNone   = "none"   // nobody is asked
)

// mode is the way that counts now. Where none is set it is the broker's users, unless it has been found out that there is no management
// API to ask and only this machine can connect. Once there was one, it stays so.
func (s *Server) mode() (string, error) {
	if s.cfg.Auth != "" {
		return s.cfg.Auth, nil
	}
	switch has := s.cfg.HasUsers(); {
	case has == UsersPresent || s.exposed():
		return AuthBroker, nil
	case has == UsersUnsettled:
		return "", problem.Unavailable(nil, "the broker has not been reached yet, so it is not known who may come in")
	}
	return AuthNone, nil
}

// exposed tells whether others than this machine's users can connect.
func (s *Server) exposed() bool { return s.cfg.BehindProxy || !localAddr(s.cfg.Addr) }

// identify finds out who sent a request: what it says in Authorization counts, else the session.
func (s *Server) identify(r *http.Request) (who, error) {
	mode, err := s.mode()
	if err != nil {
		return who{}, err
	}
	if mode == AuthNone {
		return anyone, nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		return s.byHeader(r, mode)
	}
	cookies := r.CookiesNamed(sessionCookie) // cookies ignore ports: another server on this host may have set one too
	for _, c := range cookies {
		if v, err := s.seal.read(c.Value, s.cfg.Now()); err == nil && v.Auth == mode {
			return s.bySession(r, v)
		}
	}
	if len(cookies) > 0 {
		return who{}, problem.New(http.StatusUnauthorized, "the session has ended: sign in again")
	}
	return who{}, problem.New(http.StatusUnauthorized, "sign in: %s", howTo[mode])
}

var howTo = map[string]string{
	AuthBroker: "with the name and password of a user of the broker",
	AuthToken:  "with a token (Authorization: Bearer …)",
}

func (s *Server) byHeader(r *http.Request, mode string) (who, error) {
	if name, password, ok := r.BasicAuth(); ok {
		if mode == AuthToken {
			return s.byToken(r, sumOf(password), name, viaBasic)
		}
		return s.byPassword(r, name, password, viaBasic)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if mode == AuthToken && strings.EqualFold(scheme, "Bearer") {
		return s.byToken(r, sumOf(strings.TrimSpace(token)), "", viaBearer)
	}
	return who{}, problem.New(http.StatusUnauthorized, "this Authorization is not understood: sign in %s", howTo[mode])
}

func (s *Server) bySession(r *http.Request, v session) (w who, err error) {
	if v.Auth == AuthToken {
		w, err = s.byToken(r, v.TokenSum, v.Name, viaSession)
	} else {
		w, err = s.byPassword(r, v.Name, v.Password, viaSession)
	}
	w.ends = v.Ends
	return w, err
}

// byToken looks up a token. With a name it must be that one's.
func (s *Server) byToken(r *http.Request, sum, name, via string) (who, error) {
	addr := blockOf(s.remote(r))
	w, ok, err := s.tokens.of(sum)
	if err != nil {
		return who{}, problem.Unavailable(err, "the tokens' file cannot be read: the log says why")
	}
	if ok && (name == "" || name == w.name) {
		w.via = via
		return w, nil
	}
	if err := s.mayTry(addr, ""); err != nil {
		return who{}, err
	}
	s.noteFailed(addr, "", true)
	return who{}, problem.New(http.StatusUnauthorized, "invalid access token")
}

// byPassword asks the broker, or what is remembered of its answers.
func (s *Server) byPassword(r *http.Request, name, password, via string) (who, error) {
	if name == "" || password == "" {
		return who{}, problem.New(http.StatusUnauthorized, "name and password must not be empty")
	}
	addr, d := blockOf(s.remote(r)), s.known.digest(name, password)
	said, fresh, tried := s.known.fresh(d)
	if !fresh {
		begin, end := s.guess(addr, name, tried)
		user, err := s.known.ask(r.Context(), d, name, password, begin, end)
		var refused *problem.Problem
		switch {
		case err == nil || settles(err):
			said = verdict{user: user, err: err}
		case errors.As(err, &refused):
			return who{}, err
		case !tried: // else what was right a while ago is still believed
			return who{}, problem.Unavailable(err, "the broker's management API, which knows the users, does not answer")
		}
	}
	return admitted(said, name, via)
}

func admitted(said verdict, name, via string) (who, error) {
	switch {
	case errors.Is(said.err, ErrWrongPassword):
		return who{}, problem.New(http.StatusUnauthorized, "invalid user name or password")
	case said.err != nil:
		return who{}, problem.New(http.StatusForbidden, "user %q needs one of the tags %s", problem.Shorten(name), reads.weakest())
	case !said.user.VHost:
		return who{}, problem.New(http.StatusForbidden, "user %q may not use this virtual host", problem.Shorten(name))
	}
	return who{name: said.user.Name, role: RoleOf(said.user.Tags), via: via}, nil
}

// guess limits how often the broker is asked about a name from an address. A guess counts while the broker is asked, so that those that are
// sent at the same time are limited too. What was right not long ago is no guess.
func (s *Server) guess(addr, name string, tried bool) (begin func() error, end func(error)) {
	begin = func() error {
		if tried {
			return nil
		}
		return s.mayTry(addr, name)
	}
	end = func(err error) {
		switch {
		case errors.Is(err, ErrWrongPassword):
			s.noteFailed(addr, name, !tried)
		case !tried:
			s.attempts.end(addr, name)
		}
	}
	return begin, end
}

// mayTry begins an attempt, or refuses it where too many have failed.
func (s *Server) mayTry(addr, name string) error {
	wait := s.attempts.begin(addr, name, s.cfg.Now())
	if wait == 0 {
		return nil
	}
	p := problem.New(http.StatusTooManyRequests, "too many attempts to sign in failed: wait")
	p.RetryAfter = strconv.Itoa(int(math.Ceil(wait.Seconds())))
	return p
}

// noteFailed counts an attempt that failed, and logs it.
func (s *Server) noteFailed(addr, name string, begun bool) {
	s.attempts.failed(addr, name, s.cfg.Now(), begun)
	s.cfg.Log.Warn("httpapi: sign-in failed", "user", problem.Shorten(name), "from", addr)
}

// remote is where a request comes from. What a proxy says of that is believed only where there is one: its own word is the last.
func (s *Server) remote(r *http.Request) string {
	if s.cfg.BehindProxy {
		all := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if last := strings.TrimSpace(all[len(all)-1]); last != "" {
			return hostName(last)
		}
	}
	return hostName(r.RemoteAddr)
}

// secure tells whether the browser speaks TLS.
func (s *Server) secure(r *http.Request) bool {
	return r.TLS != nil || s.cfg.BehindProxy && strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// sessionEnd is when a session that begins now ends.
func (s *Server) sessionEnd() time.Time { return s.cfg.Now().Add(sessionLasts) }
