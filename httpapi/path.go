package httpapi

import (
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"

	"github.com/labstack/echo/v4"
)

// routeEscaped has the router see every path as it was sent. Left alone, net/http gives the escaped path only where it differs from
// its own way of escaping, so that a%2Fb and a%252Fb become the same parameter.
func routeEscaped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := *r.URL
		u.RawPath = r.URL.EscapedPath()
		sent := new(http.Request)
		*sent = *r
		sent.URL = &u
		next.ServeHTTP(w, sent)
	})
}

// pathParam reads a path parameter: the only place where one is unescaped, once.
func pathParam(c echo.Context, name string) (string, error) {
	value, err := url.PathUnescape(c.Param(name))
	if err != nil || !utf8.ValidString(value) {
		return "", badRequest("%s in the path is not valid: it must be percent-encoded UTF-8", name)
	}
	if value == "" {
		return "", noSuchPath()
	}
	return value, nil
}

func pathOffset(c echo.Context) (int64, error) {
	text, err := pathParam(c, "offset")
	if err != nil {
		return 0, err
	}
	return parseOffset(text)
}

func parseOffset(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, badRequest("offset %q is not a whole number from 0", text)
	}
	return int64(n), nil
}
