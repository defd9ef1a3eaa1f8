package httpapi_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
)

const howToAddARoute = `
A route is four things, and tests miss each: a line in httpapi/routes.go with who may take it, an operation in httpapi/openapi.yaml (all
errors listed, answers closed with additionalProperties: false, an example of each body), a row in
httpapi/authorisation_test.go, and a line in docs/api/routes.md.`

// braces turns :parameter into {parameter}, as OpenAPI writes it.
var braces = regexp.MustCompile(`:(\w+)`)

func TestContractMatchesRoutes(t *testing.T) {
	var registered, described []string
	for _, r := range newWorld(t).server.Routes() {
		registered = append(registered, braces.ReplaceAllString(r, "{$1}"))
	}
	for path, item := range document(t).Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	for _, r := range registered {
		require.True(t, slices.Contains(described, r), "%s is registered, and not in httpapi/openapi.yaml.%s", r, howToAddARoute)
	}
	for _, r := range described {
		require.True(t, slices.Contains(registered, r), "%s is in httpapi/openapi.yaml, and not registered in httpapi/routes.go", r)
	}
}

func TestContractIsServed(t *testing.T) {
	a := newWorld(t).get("/api/openapi.yaml")
	require.Equal(t, "application/yaml", a.Header.Get("Content-Type"))
	require.Equal(t, string(httpapi.OpenAPI()), a.body)
}

func TestEveryOperationListsItsErrors(t *testing.T) {
	eachOperation(t, func(name, method string, o *openapi3.Operation) {
		need := []string{"400", "403", "500"}
		if signsIn(name, o) {
			need = append(need, "401", "429", "503") // 503: the management API does not authenticate the user
		}
		switch {
		case name == "GET /api/jobs":
		case strings.HasSuffix(name, "/api/session"), strings.HasSuffix(name, "/api/jobs"), strings.HasSuffix(name, "/api/messages"), strings.HasSuffix(name, "/api/release"):
			need = append(need, "415")
		case method != http.MethodGet, strings.Contains(name, "{"):
			need = append(need, "404")
		}
		if name == "GET /metrics" {
			need = need[1:] // Prometheus chooses its query parameters
		}
		if method != http.MethodGet {
			need = append(need, "413", "415")
		}
		for _, status := range need {
			require.NotNil(t, o.Responses.Value(status), "%s: %s is not listed", name, status)
		}
		require.NotEmpty(t, o.OperationID, name)
		require.NotEmpty(t, o.Summary, name)
	})
}

// signsIn reports whether an operation authenticates its caller.
func signsIn(name string, o *openapi3.Operation) bool {
	return o.Security == nil || len(*o.Security) > 0 || name == "POST /api/session"
}

// An answer may contain only what the contract lists. A client's own record is marked x-open.
func TestAnswerSchemasAreClosed(t *testing.T) {
	eachOperation(t, func(name, _ string, o *openapi3.Operation) {
		for status, response := range o.Responses.Map() {
			for media, content := range response.Value.Content {
				require.NotNil(t, content.Schema, "%s %s %s", name, status, media)
				requireClosed(t, name+" "+status, content.Schema.Value, map[*openapi3.Schema]bool{})
			}
		}
	})
}

func requireClosed(t *testing.T, where string, s *openapi3.Schema, seen map[*openapi3.Schema]bool) {
	t.Helper()
	if seen[s] {
		return
	}
	seen[s] = true
	_, open := s.Extensions["x-open"]
	if s.Type.Is("object") || len(s.Properties) > 0 {
		closed := s.AdditionalProperties.Has != nil && !*s.AdditionalProperties.Has || s.AdditionalProperties.Schema != nil
		require.True(t, closed || open, "%s: an object is open: it needs additionalProperties: false", where)
	}
	if s.AdditionalProperties.Schema != nil {
		requireClosed(t, where+".*", s.AdditionalProperties.Schema.Value, seen)
	}
	for name, property := range s.Properties {
		requireClosed(t, where+"."+name, property.Value, seen)
	}
	if s.Items != nil {
		requireClosed(t, where+"[]", s.Items.Value, seen)
	}
	for _, some := range []openapi3.SchemaRefs{s.OneOf, s.AnyOf, s.AllOf} {
		for _, one := range some {
			requireClosed(t, where, one.Value, seen)
		}
	}
	if s.Type == nil && len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) == 0 {
		require.True(t, open, "%s: the schema allows any value", where)
	}
}

func eachOperation(t *testing.T, look func(name, method string, o *openapi3.Operation)) {
	t.Helper()
	for path, item := range document(t).Paths.Map() {
		for method, operation := range item.Operations() {
			look(method+" "+path, method, operation)
		}
	}
}
