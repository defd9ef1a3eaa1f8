package httpapi

import (
	"mime"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// maxBody is the largest body that is read, in bytes: the largest record.
const maxBody = 16 << 20

// guard refuses what must not reach a handler, on every path and whoever asks.
func (s *Server) guard(next http.Handler) http.Handler {
	s.origins.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, problem.New(http.StatusForbidden, "a browser sent this for another site, which may not act here"))
	}))
	for _, o := range s.cfg.CORSOrigins {
		_ = s.origins.AddTrustedOrigin(o) // CheckOrigins has read them
	}
	return s.harden(s.checkHost(s.cors(s.origins.Handler(checkBody(next)))))
}

// harden sets the headers that keep browsers from making more of an answer than data.
func (s *Server) harden(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		if s.cfg.Version != "" {
			h.Set("Millrace-Version", s.cfg.Version)
		}
		next.ServeHTTP(w, r)
	})
}

// checkHost refuses names that this server does not go by.
func (s *Server) checkHost(next http.Handler) http.Handler {
	return s.hosts.only(next, func(w http.ResponseWriter, r *http.Request) {
		problem.Write(w, r, problem.New(http.StatusForbidden, "the host name %q is not expected here: use one of those of --http-addr, the certificate or --http-hosts", problem.Shorten(r.Host)))
	})
}

// checkBody refuses bodies that are not JSON by their own account, and ends those that are too large. Browsers send JSON to another
// site only after asking.
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
