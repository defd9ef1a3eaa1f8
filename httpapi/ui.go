package httpapi

import (
	"bytes"
	_ "embed" // the contract
	"encoding/json"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"
	"go.yaml.in/yaml/v3"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/ui"
)

// openAPI describes every route. Tests compare it with the routes and with the answers.
//
//go:embed openapi.yaml
var openAPI []byte

const (
	yamlType     = "application/yaml"
	contractPath = "/api-docs/openapi.json" // the contract in a form that browsers read, for the UI
)

// contract returns the API's description with the prefix in it.
func contract(prefix string) []byte {
	return bytes.Replace(openAPI, []byte("servers: [{url: /}]"), []byte("servers: [{url: "+prefix+"/}]"), 1)
}

func showContract(prefix string) handler {
	return func(in *problem.Request) error {
		if in.Query(); in.Err() != nil {
			return in.Err()
		}
		return in.Blob(http.StatusOK, yamlType, contract(prefix))
	}
}

// withUI serves the paths of the web UI, and the rest by next. The files of the UI need no sign-in:
// they hold no data, which the UI gets from the API.
func withUI(prefix string, next http.Handler) http.Handler {
	handler := ui.Handler(prefix, next)
	asJSON := sync.OnceValues(func() ([]byte, error) {
		var all any
		if err := yaml.Unmarshal(contract(prefix), &all); err != nil {
			return nil, err
		}
		return json.Marshal(all)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != contractPath || r.Method != http.MethodGet {
			handler.ServeHTTP(w, r)
			return
		}
		body, err := asJSON()
		if err != nil {
			problem.Write(w, r, err)
			return
		}
		w.Header().Set("Content-Type", echo.MIMEApplicationJSON)
		_, _ = w.Write(body)
	})
}
