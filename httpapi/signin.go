package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// whoami is what a client may know of itself.
type whoami struct {
	Name          string `json:"name"`
	Role          Role   `json:"role"`
	Auth          string `json:"auth"`    // broker, token or none
	Via           string `json:"via"`     // basic, bearer, session or none
	VHost         string `json:"vhost"`   // of this sidecar
	MayAct        bool   `json:"may_act"` // take the routes that change something
	MayAdminister bool   `json:"may_administer"`
	ReadOnly      bool   `json:"read_only"`    // the sidecar is, for everybody
	HidesArgs     bool   `json:"hides_args"`   // some arguments are not shown to this role
	SessionEnds   *int64 `json:"session_ends"` // seconds since 1970; null without a session
	Environment   string `json:"environment,omitempty"`
}

func (s *Server) newWhoami(w who) whoami {
	mode, err := s.mode()
	if err != nil { // it was there a moment ago
		mode = AuthBroker
	}
	answer := whoami{
		Name: w.name, Role: w.role, Auth: mode, Via: w.via, VHost: s.cfg.VHost, ReadOnly: s.cfg.ReadOnly, HidesArgs: s.hiderFor(w) != nil,
		MayAct: !s.cfg.ReadOnly && w.role.access() >= acts, MayAdminister: !s.cfg.ReadOnly && w.role.access() >= administer,
		Environment: s.cfg.Environment,
	}
	if w.ends > 0 {
		answer.SessionEnds = &w.ends
	}
	return answer
}

func (s *Server) whoami(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.newWhoami(whoSent(c.Request())))
}

// signIn begins a session: the way in for browsers, whose scripts must not have the password.
func (s *Server) signIn(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	var body struct {
		Name     string `json:"name"`
		Password string `json:"password"`
		Token    string `json:"token"`
	}
	if err := problem.ReadBody(c, &body); err != nil {
		return err
	}
	mode, err := s.mode()
	if err != nil {
		return err
	}
	v := session{Auth: mode, Name: body.Name, Password: body.Password, Ends: s.sessionEnd().Unix()}
	byName, byToken := body.Name != "" && body.Password != "", body.Token != ""
	switch {
	case byName == byToken || byToken && body.Name+body.Password != "":
		return problem.BadRequest("the body must have either name and password, or a token")
	case mode == AuthNone:
		return c.JSON(http.StatusOK, s.newWhoami(anyone))
	case byToken != (mode == AuthToken):
		return problem.New(http.StatusUnauthorized, "sign in %s", howTo[mode])
	case mode == AuthToken:
		v.TokenSum = sumOf(body.Token)
	}
	w, err := s.bySession(c.Request(), v)
	if err != nil {
		return err
	}
	if w.role == Nobody {
		return problem.New(http.StatusForbidden, "user %q needs one of the tags %s", problem.Shorten(w.name), reads.weakest())
	}
	v.Name = w.name
	sealed := s.seal.write(v)
	if len(sealed) > maxSession {
		return problem.BadRequest("name and password are too long for a session")
	}
	problem.InfoOf(c.Request()).User = w.name
	c.SetCookie(s.cookie(c.Request(), sealed))
	return c.JSON(http.StatusOK, s.newWhoami(w))
}

// signOut ends a session in the browser that has it.
func (s *Server) signOut(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	c.SetCookie(s.cookie(c.Request(), ""))
	return c.NoContent(http.StatusNoContent)
}
