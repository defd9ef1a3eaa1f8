package httpapi_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
)

// Each body of a request or an answer has an example. The validation of the contract checks that
// examples match their schemas.
func TestEachBodyHasAnExample(t *testing.T) {
	used := map[string]bool{}
	look := func(where string, content openapi3.Content) {
		for media, m := range content {
			if m.Schema.Value.Format == "binary" {
				continue
			}
			require.NotEmpty(t, m.Examples, "%s: %s has no example", where, media)
			for _, example := range m.Examples {
				used[example.Ref] = true
			}
		}
	}
	eachOperation(t, func(name, _ string, o *openapi3.Operation) {
		if o.RequestBody != nil {
			look(name+": request", o.RequestBody.Value.Content)
		}
		for status, response := range o.Responses.Map() {
			look(name+": "+status, response.Value.Content)
		}
	})
	for name := range document(t).Components.Examples {
		require.True(t, used["#/components/examples/"+name], "no body has the example %q", name)
	}
}

func TestWrongExamplesAreDetected(t *testing.T) {
	for right, wrong := range map[string]string{
		"leaseExtension: {value: {lease_ms: 120000}}": "leaseExtension: {value: {lease: 120000}}",
		"healthy: {value: {status: ok}}":              "healthy: {value: {status: well}}",
	} {
		text := strings.Replace(string(httpapi.OpenAPI()), right, wrong, 1)
		require.Contains(t, text, wrong)
		doc, err := openapi3.NewLoader().LoadFromData([]byte(text))
		require.NoError(t, err)
		require.ErrorContains(t, doc.Validate(t.Context()), "invalid example", wrong)
	}
}

// The server accepts each example of a request.
func TestRequestExamplesAreAccepted(t *testing.T) {
	fill := strings.NewReplacer("{jid}", "a", "{name}", "a", "{id}", "a", "{queue}", "a", "{identity}", "a", "{stream}", "retries", "{offset}", "0", "{hash}", strings.Repeat("0", 32))
	eachOperation(t, func(name, method string, o *openapi3.Operation) {
		if o.RequestBody == nil {
			return
		}
		_, path, _ := strings.Cut(name, " ")
		for which, example := range o.RequestBody.Value.Content["application/json"].Examples {
			body, err := json.Marshal(example.Value.Value)
			require.NoError(t, err)
			a := newWorld(t).do(method, fill.Replace(path), string(body))
			require.NotContains(t, []int{http.StatusBadRequest, http.StatusInternalServerError}, a.StatusCode, "%s, %s: %s", name, which, a.body)
		}
	})
}
