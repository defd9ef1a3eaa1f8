package httpapi

import (
	"encoding/json"
	"net/http"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/ui"
)

// contractPath is where the UI finds the API's description in a form that browsers read.
const contractPath = "/api-docs/openapi.json"

// withUI serves the web UI's paths, and the rest as before. The UI asks the API as everybody does: its files say nothing to a stranger.
func (s *Server) withUI(next http.Handler) http.Handler {
	handler := ui.Handler(s.cfg.Prefix, next)
	contract := sync.OnceValues(s.contractJSON)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != contractPath || r.Method != http.MethodGet {
			handler.ServeHTTP(w, r)
			return
		}
		body, err := contract()
		if err != nil {
			problem.Write(w, r, err)
			return
		}
		w.Header().Set("Content-Type", echo.MIMEApplicationJSON)
		_, _ = w.Write(body)
	})
}

func (s *Server) contractJSON() ([]byte, error) {
	var all any
	if err := yaml.Unmarshal(s.servers(), &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}
