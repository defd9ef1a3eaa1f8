package httpapi

import (
	"compress/gzip"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strings"

	"github.com/klauspost/compress/gzhttp"
	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// maxBody is the largest body that is read, in bytes: the largest record.
const maxBody = 16 << 20

// harden sets the headers that keep browsers from using an answer as anything but data.
func harden(version string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		if version != "" {
			h.Set("Millrace-Version", version)
		}
		next.ServeHTTP(w, r)
	})
}

// checkBody refuses bodies that do not say that they are JSON, and cuts off those that are too
// large. Browsers send JSON to another site only after asking it.
func checkBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead && r.ContentLength != 0 {
			media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
			if err != nil || media != echo.MIMEApplicationJSON {
				problem.Write(w, r, problem.New(http.StatusUnsupportedMediaType, "a body must come as Content-Type: application/json"))
				return
			}
			if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
				problem.Write(w, r, problem.New(http.StatusUnsupportedMediaType, "a body must come without a Content-Encoding"))
				return
			}
		}
		if r.ContentLength > maxBody {
			problem.Write(w, r, &http.MaxBytesError{Limit: maxBody})
			return
		}
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		next.ServeHTTP(w, r)
	})
}

var prefixForm = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)+$`)

// CheckPrefix returns an error for a prefix that cannot stand before all paths.
func CheckPrefix(prefix string) error {
	if prefix != "" && !prefixForm.MatchString(prefix) {
		return fmt.Errorf("httpapi: %q is not a path prefix: write it like /millrace", prefix)
	}
	return nil
}

// probes are also there without the prefix: they do not come through the proxy that adds it.
var probes = map[string]bool{"/healthz": true, "/readyz": true, "/metrics": true}

// stripPrefix removes the prefix from paths, and refuses paths without it.
func stripPrefix(prefix string, next http.Handler) http.Handler {
	if prefix == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, found := strings.CutPrefix(r.URL.EscapedPath(), prefix+"/")
		switch {
		case found:
			next.ServeHTTP(w, withPath(r, strings.TrimPrefix(r.URL.Path, prefix), "/"+path))
		case r.URL.Path == prefix && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			http.Redirect(w, r, prefix+"/", http.StatusPermanentRedirect)
		case probes[r.URL.Path]:
			next.ServeHTTP(w, r)
		default:
			problem.Write(w, r, problem.NoSuchPath())
		}
	})
}

// routeEscaped makes the router see every path as it was sent. Otherwise net/http gives it the
// escaped path only where that differs from its own escaping, and a%2Fb and a%252Fb become the same
// parameter.
func routeEscaped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, withPath(r, r.URL.Path, r.URL.EscapedPath()))
	})
}

// withPath returns a request with another path.
func withPath(r *http.Request, path, escaped string) *http.Request {
	u, changed := *r.URL, *r
	u.Path, u.RawPath = path, escaped
	changed.URL = &u
	return &changed
}

// eventsPath is answered in pieces that must not wait for more.
const eventsPath = "/api/events"

// compressed compresses answers of the API for clients that accept it: lists shrink to a tenth.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.EnableZstd(false), gzhttp.CompressionLevel(gzip.BestSpeed),
		gzhttp.ContentTypes([]string{echo.MIMEApplicationJSON, exportTypes[formatNDJSON], yamlType, "text/csv"}))
	if err != nil { // the options are these
		panic(err)
	}
	small := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == eventsPath {
			next.ServeHTTP(w, r)
			return
		}
		small.ServeHTTP(w, r)
	})
}
