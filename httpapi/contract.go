package httpapi

import (
	_ "embed" // the contract
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// openAPI describes every route. It is written by hand, and held by tests to what is registered and answered.
//
//go:embed openapi.yaml
var openAPI []byte

const yamlType = "application/yaml"

// contract gives the API's description.
func (s *Server) contract(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	return c.Blob(http.StatusOK, yamlType, s.servers())
}
