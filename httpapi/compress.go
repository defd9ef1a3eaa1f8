package httpapi

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/labstack/echo/v4"
)

// eventsPath is answered for as long as somebody listens, in pieces that must not wait for more.
const eventsPath = "/api/events"

// compressed has answers of the API compressed for whoever takes that: lists are a tenth of their size then.
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
