package httpapi

import (
	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// sessionsAPI signs users in and out, and returns who a client is.
type sessionsAPI struct {
	auth        *auth.Authenticator
	hide        *redactor
	vhost       string
	environment string
	readOnly    bool
}

func (s *sessionsAPI) newWhoami(p auth.Principal) answer.Whoami {
	mode, err := s.auth.Mode()
	if err != nil { // it was there a moment ago
		mode = auth.ModeBroker
	}
	shown := answer.Whoami{
		Name: p.Name, Role: string(p.Role), Auth: mode, Via: p.Via, VHost: s.vhost, ReadOnly: s.readOnly, HidesArgs: s.hide.from(p) != nil,
		MayAct: s.auth.May(p, auth.Act), MayAdminister: s.auth.May(p, auth.Administer), Environment: s.environment,
	}
	if p.Ends > 0 {
		shown.SessionEnds = &p.Ends
	}
	return shown
}

func (s *sessionsAPI) show(in *problem.Request) (any, error) {
	in.Query()
	return s.newWhoami(auth.PrincipalOf(in.Request())), nil
}

// begin signs a browser in. A cookie holds the session, so that scripts never have the password.
func (s *sessionsAPI) begin(in *problem.Request) (any, error) {
	in.Query()
	var body struct {
		Name     string `json:"name"`
		Password string `json:"password"`
		Token    string `json:"token"`
	}
	if in.Body(&body); in.Err() != nil {
		return nil, in.Err()
	}
	p, cookie, err := s.auth.SignIn(in.Request(), auth.Credentials(body))
	if err != nil {
		return nil, err
	}
	if cookie != nil {
		problem.InfoOf(in.Request()).User = p.Name
		in.SetCookie(cookie)
	}
	return s.newWhoami(p), nil
}

// end signs a browser out.
func (s *sessionsAPI) end(in *problem.Request) error {
	if in.Query(); in.Err() == nil {
		in.SetCookie(s.auth.SignOut(in.Request()))
	}
	return in.Err()
}
