package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// admit has a route answer only those who may take it.
func (s *Server) admit(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r.needs == open {
			return r.handle(c)
		}
		w, err := s.identify(c.Request())
		if err != nil {
			s.challenge(c, err)
			return err
		}
		problem.InfoOf(c.Request()).User = w.name
		if w.role.access() < r.needs {
			return problem.New(http.StatusForbidden, "%s may not do this: it needs %s", orNobody(w), r.needs.weakest())
		}
		if s.cfg.ReadOnly && r.needs > reads {
			return problem.New(http.StatusForbidden, "this sidecar is read-only: nothing can be changed through it")
		}
		c.SetRequest(withWho(c.Request(), w))
		return r.handle(c)
	}
}

func orNobody(w who) string {
	if w.role == Nobody {
		return "a user without a tag"
	}
	return string(w.role)
}

// challenge has programs ask for a name and password. Browsers' pages are left alone: theirs would be a window of the browser's own, and
// what is typed there is sent along for ever.
func (s *Server) challenge(c echo.Context, err error) {
	if problem.From(err).Status != http.StatusUnauthorized || c.Request().Header.Get("Sec-Fetch-Mode") != "" {
		return
	}
	c.Response().Header().Set("WWW-Authenticate", `Basic realm="Millrace", charset="UTF-8"`)
}
