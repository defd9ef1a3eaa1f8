package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
)

//go:embed static vendor/*.js vendor/*.css vendor/*.woff2
var embedded embed.FS

// Policy is the Content-Security-Policy of the page.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; " +
	"base-uri 'self'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// pages are the paths at which the page is served. A wildcard stands for one escaped segment.
var pages = regexp.MustCompile(`^/(?:dashboard|job-queues(?:/[^/]+)?|scheduled-jobs|periodic-jobs(?:/[^/]+)?|limits(?:/[^/]+)?|governed-queues(?:/[^/]+)?|unique-keys|retries|dead-jobs|gated-jobs|jobs(?:/[^/]+)?|job-metrics(?:/[^/]+)?|` +
	`worker-processes(?:/[^/]+)?|live|operations|rejected|health|api-docs|sign-in)$`)

// file is the answer for one path.
type file struct {
	body, zipped []byte
	kind, tag    string
}

func newFile(name string, body []byte) file {
	sum := sha256.Sum256(body)
	f := file{body: body, kind: mime.TypeByExtension(path.Ext(name)), tag: hex.EncodeToString(sum[:10])}
	switch path.Ext(name) {
	case ".woff2":
		f.kind = "font/woff2"
		return f // already compressed
	case ".js":
		f.kind = "text/javascript; charset=utf-8"
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, _ = w.Write(body)
	_ = w.Close()
	f.zipped = b.Bytes()
	return f
}

// files returns all assets by their paths, and a hash of all of them.
var files = sync.OnceValues(func() (map[string]file, string) {
	all, sum := map[string]file{}, sha256.New()
	err := fs.WalkDir(embedded, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := embedded.ReadFile(name)
		all[name] = newFile(name, body)
		sum.Write([]byte(name + "\x00" + all[name].tag))
		return err
	})
	if err != nil { // embedded files can always be read
		panic(err)
	}
	return all, hex.EncodeToString(sum.Sum(nil)[:8])
})

// Handler serves the UI, and passes all other requests to next. Requests arrive without the prefix,
// but links in the page contain it.
func Handler(prefix string, next http.Handler) http.Handler {
	all, hash := files()
	assets := "/assets/" + hash + "/"
	page := newFile("index.html", fill(all["static/index.html"].body, prefix, hash))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.EscapedPath()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		name, isAsset := strings.CutPrefix(at, assets)
		asset, known := all[name]
		switch {
		case at == "/":
			w.Header().Set("Cache-Control", "no-cache")
			http.Redirect(w, r, prefix+"/dashboard", http.StatusFound)
		case pages.MatchString(at):
			servePage(w, r, page, http.StatusOK)
		case isAsset && known:
			asset.serve(w, r, "public, max-age=31536000, immutable", http.StatusOK)
		case at == "/favicon.ico":
			all["static/icon.svg"].serve(w, r, "no-cache", http.StatusOK)
		case strings.Contains(r.Header.Get("Accept"), "text/html") && !strings.HasPrefix(at, "/api/"):
			answer := &unlessMissing{ResponseWriter: w}
			next.ServeHTTP(answer, r)
			if answer.missing {
				// They belong to the answer that was dropped.
				w.Header().Del("Content-Length")
				w.Header().Del("Content-Encoding")
				servePage(w, r, page, http.StatusNotFound)
			}
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func servePage(w http.ResponseWriter, r *http.Request, page file, status int) {
	w.Header().Set("Content-Security-Policy", Policy)
	w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	page.serve(w, r, "no-cache", status)
}

// unlessMissing drops a 404 answer, so that a browser gets a page instead.
type unlessMissing struct {
	http.ResponseWriter
	missing bool
}

func (u *unlessMissing) Unwrap() http.ResponseWriter { return u.ResponseWriter }

func (u *unlessMissing) WriteHeader(status int) {
	u.missing = status == http.StatusNotFound
	if !u.missing {
		u.ResponseWriter.WriteHeader(status)
	}
}

func (u *unlessMissing) Write(b []byte) (int, error) {
	if u.missing {
		return len(b), nil
	}
	return u.ResponseWriter.Write(b)
}

// fill replaces the placeholders in the page. The page is the only file that is not served as it is
// in the tree.
func fill(page []byte, prefix, hash string) []byte {
	page = bytes.ReplaceAll(page, []byte("{prefix}"), []byte(html.EscapeString(prefix)))
	return bytes.ReplaceAll(page, []byte("{hash}"), []byte(hash))
}

func (f file) serve(w http.ResponseWriter, r *http.Request, cache string, status int) {
	h := w.Header()
	body, tag := f.body, `"`+f.tag+`"`
	if f.zipped != nil {
		h.Set("Vary", "Accept-Encoding")
		if acceptsGzip(r) {
			body, tag = f.zipped, `"`+f.tag+`-gzip"`
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("Cache-Control", cache)
	h.Set("Content-Type", f.kind)
	h.Set("ETag", tag)
	if status == http.StatusOK && matches(r.Header.Get("If-None-Match"), tag) {
		h.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

func acceptsGzip(r *http.Request) bool {
	for _, coding := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if name == "gzip" && strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || name == "gzip" && weight == "" {
			return true
		}
	}
	return false
}

// matches reports whether a list of entity tags contains tag. A proxy may have made it a weak tag.
func matches(list, tag string) bool {
	for _, t := range strings.Split(list, ",") {
		if strings.TrimPrefix(strings.TrimSpace(t), "W/") == tag {
			return true
		}
	}
	return false
}
