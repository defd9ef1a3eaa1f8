package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
)

var parsed = sync.OnceValues(func() (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(httpapi.OpenAPI())
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
})

// document is the contract.
func document(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := parsed()
	require.NoError(t, err)
	return doc
}

func init() {
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/vnd.google.protobuf", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/csv", openapi3filter.FileBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/event-stream", lastEvent)
}

// lastEvent returns the last of some events. The contract describes them one by one.
func lastEvent(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	event := map[string]any{}
	for block := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
		event = map[string]any{}
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			switch name {
			case "": // a keep-alive
			case "retry":
				event[name] = json.Number(value)
			default:
				event[name] = value
			}
		}
	}
	return event, nil
}

// held compares every answer of a server with the contract, for all requests of a test.
func held(t testing.TB, doc *openapi3.T, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent []byte
		if r.Body != nil && r.ContentLength > 0 && r.ContentLength < 1<<20 {
			sent, _ = io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(sent))
		}
		r.Header.Del("Accept-Encoding") // Go's client sets it by itself, and what is compared is text
		tee := &tee{ResponseWriter: w, whole: true}
		next.ServeHTTP(tee, r) // an answer that is cut off panics past the check
		if !tee.whole {
			return
		}
		if fault := compare(doc, r, sent, tee); fault != nil {
			t.Errorf("%s %s: the answer is not what httpapi/openapi.yaml says: %v\n%d %.1000s", r.Method, r.URL, fault, tee.status(), tee.body.String())
		}
	})
}

// tee keeps a copy of what it passes on.
type tee struct {
	http.ResponseWriter
	code  int
	body  bytes.Buffer
	whole bool // the body is not too large to be compared
}

// maxCompared is the largest body that is compared with the contract.
const maxCompared = 4 << 20

func (t *tee) WriteHeader(code int) {
	if t.code == 0 && code >= 200 {
		t.code = code
	}
	t.whole = t.whole && code != http.StatusSwitchingProtocols
	t.ResponseWriter.WriteHeader(code)
}

func (t *tee) Write(b []byte) (int, error) {
	if t.whole = t.whole && t.body.Len()+len(b) <= maxCompared; t.whole {
		t.body.Write(b)
	}
	return t.ResponseWriter.Write(b)
}

func (t *tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func (t *tee) status() int {
	if t.code == 0 {
		return http.StatusOK
	}
	return t.code
}

func compare(doc *openapi3.T, r *http.Request, sent []byte, answer *tee) error {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	path, parameters := lookUp(doc, r.URL.EscapedPath())
	var operation *openapi3.Operation
	if path != "" {
		operation = doc.Paths.Value(path).GetOperation(strings.ToUpper(method))
	}
	if operation == nil {
		return compareError(doc, answer)
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r.Clone(context.Background()), PathParams: parameters, QueryParams: r.URL.Query(),
		Route:   &routers.Route{Spec: doc, Path: path, PathItem: doc.Paths.Value(path), Method: method, Operation: operation},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if answer.status() < 300 && int64(len(sent)) == max(r.ContentLength, 0) {
		input.Request.Body = io.NopCloser(bytes.NewReader(tamed(sent)))
		if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			return fmt.Errorf("a request was taken that it does not describe: %w", err)
		}
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.status(), Header: answer.Header(), Options: input.Options,
		Body: io.NopCloser(bytes.NewReader(tamed(answer.body.Bytes()))),
	}
	if r.Method == http.MethodHead {
		if operation.Responses.Status(answer.status()) == nil {
			return fmt.Errorf("status %d is not described", answer.status())
		}
		return nil
	}
	return openapi3filter.ValidateResponse(context.Background(), output)
}

// tamed replaces a number that the validator's float64 cannot hold. Records may contain such
// numbers.
func tamed(body []byte) []byte { return bytes.ReplaceAll(body, []byte("1e400"), []byte("1e300")) }

// compareError checks the answer to a request that no operation describes: it must still be an
// error.
func compareError(doc *openapi3.T, answer *tee) error {
	switch answer.status() {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusForbidden, http.StatusUnauthorized, http.StatusBadRequest,
		http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusNoContent:
	default:
		return fmt.Errorf("nothing at this path answers %d", answer.status())
	}
	if answer.status() == http.StatusNoContent || answer.body.Len() == 0 {
		return nil // to OPTIONS, HEAD
	}
	var value any
	if err := jsonDecode(answer.body.Bytes(), &value); err != nil {
		return err
	}
	return doc.Components.Schemas["Error"].Value.VisitJSON(value)
}

// lookUp finds the path that an escaped path matches, literal segments first, with its parameters
// unescaped once.
func lookUp(doc *openapi3.T, escaped string) (path string, parameters map[string]string) {
	asked := strings.Split(escaped, "/")
	for candidate := range doc.Paths.Map() {
		found, ok := match(strings.Split(candidate, "/"), asked)
		if ok && (path == "" || strings.Count(candidate, "{") < strings.Count(path, "{")) {
			path, parameters = candidate, found
		}
	}
	return path, parameters
}

func match(pattern, asked []string) (map[string]string, bool) {
	if len(pattern) != len(asked) {
		return nil, false
	}
	parameters := map[string]string{}
	for i, part := range pattern {
		if !strings.HasPrefix(part, "{") {
			if part != asked[i] {
				return nil, false
			}
			continue
		}
		value, err := url.PathUnescape(asked[i])
		if err != nil || value == "" {
			return nil, false
		}
		parameters[strings.Trim(part, "{}")] = value
	}
	return parameters, true
}

// The check itself must detect violations.
func TestContractCheckDetectsViolations(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		media              string
	}{
		"a member more":     {http.MethodGet, "/healthz", `{"status":"ok","more":1}`, 200, "application/json"},
		"a member less":     {http.MethodGet, "/healthz", `{}`, 200, "application/json"},
		"another status":    {http.MethodGet, "/healthz", `{"status":"ok"}`, 201, "application/json"},
		"another type":      {http.MethodGet, "/healthz", `{"status":"ok"}`, 200, "text/plain"},
		"an odd error":      {http.MethodGet, "/nowhere", `{"error":"odd","reason":"r","request_id":"i"}`, 404, "application/json"},
		"a page of nothing": {http.MethodGet, "/api/retries?page=1", `{"total_count":1,"item_count":0,"page":1,"page_size":1,"next":null,"items":[]}`, 200, "application/json"},
		"a bad request":     {http.MethodGet, "/api/retries?limit=0", `[]`, 200, "application/json"},
		"a success nowhere": {http.MethodGet, "/nowhere", `{}`, 200, "application/json"},
	} {
		r := request(c.method, c.path, "")
		recorder := httptest.NewRecorder()
		answer := &tee{ResponseWriter: recorder, whole: true}
		answer.Header().Set("Content-Type", c.media)
		answer.WriteHeader(c.status)
		_, err := io.WriteString(answer, c.body)
		require.NoError(t, err)
		require.Error(t, compare(document(t), r, nil, answer), name)
	}
}
