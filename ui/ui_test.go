package ui

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// elsewhere answers the requests that are not for the UI.
var elsewhere = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })

func get(t *testing.T, prefix, target string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler(prefix, elsewhere).ServeHTTP(w, r)
	return w.Result()
}

func text(t *testing.T, r *http.Response) string {
	t.Helper()
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		require.NoError(t, err)
		body = z
	}
	all, err := io.ReadAll(body)
	require.NoError(t, err)
	return string(all)
}

func TestPagesAreServed(t *testing.T) {
	for _, at := range []string{"/dashboard", "/job-queues", "/job-queues/a%2Fb", "/scheduled-jobs", "/periodic-jobs", "/periodic-jobs/nightly", "/limits", "/limits/each", "/governed-queues", "/governed-queues/a%2Fb", "/unique-keys", "/retries?queue=low", "/dead-jobs", "/gated-jobs", "/jobs", "/jobs/x", "/job-metrics/A%20b",
		"/worker-processes/h:1:t", "/live", "/operations", "/rejected", "/health", "/api-docs", "/sign-in"} {
		r := get(t, "", at)
		require.Equal(t, http.StatusOK, r.StatusCode, at)
		require.Equal(t, "text/html; charset=utf-8", r.Header.Get("Content-Type"))
		require.Equal(t, Policy, r.Header.Get("Content-Security-Policy"))
		require.Contains(t, text(t, r), `<base href="/">`)
	}
}

func TestRootRedirectsToDashboard(t *testing.T) {
	r := get(t, "/millrace", "/")
	require.Equal(t, http.StatusFound, r.StatusCode)
	require.Equal(t, "/millrace/dashboard", r.Header.Get("Location"))
}

func TestOtherPathsArePassedOn(t *testing.T) {
	for _, at := range []string{"/api/overview", "/metrics", "/healthz", "/job-queues/", "/job-queues/a/b", "/jobs/", "/assets/x/static/app.js", "/nothing", "/retries/x"} {
		require.Equal(t, http.StatusTeapot, get(t, "", at).StatusCode, at)
	}
	w := httptest.NewRecorder()
	Handler("", elsewhere).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/retries", nil))
	require.Equal(t, http.StatusTeapot, w.Code)
}

// missing answers like the API for a missing resource.
var missing = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "17")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"error":"no"}...`)
})

func TestMissingPagesAreHTML(t *testing.T) {
	ask := func(next http.Handler, at, accept string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, at, nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		Handler("/p", next).ServeHTTP(w, r)
		return w.Result()
	}
	const browser = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, at := range []string{"/nothing", "/job-queues/a/b", "/retries/x", "/job-queues/"} {
		r := ask(missing, at, browser)
		require.Equal(t, http.StatusNotFound, r.StatusCode, at)
		require.Equal(t, "text/html; charset=utf-8", r.Header.Get("Content-Type"))
		require.Equal(t, Policy, r.Header.Get("Content-Security-Policy"))
		require.Empty(t, r.Header.Get("Content-Length"))
		require.Contains(t, text(t, r), `<base href="/p/">`)
		require.Contains(t, text(t, ask(missing, at, "application/json")), `"error"`)
	}
	r := ask(missing, "/api/nothing", browser)
	require.Equal(t, "application/json", r.Header.Get("Content-Type"), "the API answers for itself")
	r = ask(elsewhere, "/metrics", browser)
	require.Equal(t, http.StatusTeapot, r.StatusCode, "what is there is left alone")
}

// references matches the files that a page or a module names.
var references = regexp.MustCompile(`(?:href|src)="(assets/[^"]+)"|(?:from|import)\s*\(?\s*['"](\.[^'"]+)['"]|url\("(\.[^"]+)"\)`)

// Every file that the page loads, directly or indirectly, is served below a prefix.
func TestEveryReferencedFileIsServed(t *testing.T) {
	all, hash := files()
	root := "/assets/" + hash + "/"
	seen := map[string]bool{}
	var walk func(at string)
	walk = func(at string) {
		if seen[at] {
			return
		}
		seen[at] = true
		r := get(t, "/p", at)
		require.Equal(t, http.StatusOK, r.StatusCode, at)
		body := text(t, r)
		if at != "/retries" {
			require.Equal(t, "public, max-age=31536000, immutable", r.Header.Get("Cache-Control"))
		} else {
			require.Equal(t, "no-cache", r.Header.Get("Cache-Control"))
		}
		for _, m := range references.FindAllStringSubmatch(body, -1) {
			switch {
			case m[1] != "":
				walk("/" + m[1])
			case strings.HasPrefix(at, root):
				walk(path.Join(path.Dir(at), m[2]+m[3]))
			}
		}
	}
	walk("/retries")
	for name := range all {
		if name != "static/index.html" {
			require.True(t, seen[root+name], "%s is not used", name)
		}
	}
	require.Contains(t, text(t, get(t, "/p", "/retries")), `<base href="/p/">`)
}

func TestUnchangedFilesAreNotSentAgain(t *testing.T) {
	_, hash := files()
	app := "/assets/" + hash + "/static/app.js"
	for _, coding := range []string{"identity", "gzip", "br, gzip;q=0.5"} {
		r := get(t, "", app, "Accept-Encoding", coding)
		require.Equal(t, strings.Contains(coding, "gzip"), r.Header.Get("Content-Encoding") == "gzip", coding)
		require.Equal(t, "Accept-Encoding", r.Header.Get("Vary"))
		tag := r.Header.Get("ETag")
		for _, known := range []string{tag, `"x", W/` + tag} {
			r = get(t, "", app, "Accept-Encoding", coding, "If-None-Match", known)
			require.Equal(t, http.StatusNotModified, r.StatusCode)
			require.Empty(t, text(t, r))
		}
		require.Equal(t, http.StatusOK, get(t, "", app, "Accept-Encoding", coding, "If-None-Match", `"x"`).StatusCode)
	}
	require.Empty(t, get(t, "", app, "Accept-Encoding", "gzip;q=0").Header.Get("Content-Encoding"))
	w := httptest.NewRecorder()
	Handler("", elsewhere).ServeHTTP(w, httptest.NewRequest(http.MethodHead, app, nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Zero(t, w.Body.Len())
	require.Equal(t, "image/svg+xml", get(t, "", "/favicon.ico").Header.Get("Content-Type"))
}

// loadedWith returns the named files, the files that they import, and the files that the page
// names, without the font.
func loadedWith(all map[string]file, names ...string) map[string]bool {
	seen := map[string]bool{}
	var walk func(name string)
	walk = func(name string) {
		if seen[name] || path.Ext(name) == ".woff2" {
			return
		}
		seen[name] = true
		for _, m := range references.FindAllStringSubmatch(string(all[name].body), -1) {
			switch {
			case m[1] != "":
				walk(strings.TrimPrefix(m[1], "assets/{hash}/"))
			// A page is imported dynamically, and its modules are loaded with it.
			case m[3] == "" && !strings.HasPrefix(m[0], "import("):
				walk(path.Join(path.Dir(name), m[2]))
			}
		}
	}
	for _, name := range names {
		walk(name)
	}
	return seen
}

// The page preloads all modules that it and the dashboard need, so that the browser does not find
// them one after another.
func TestModulesArePreloaded(t *testing.T) {
	all, _ := files()
	preloaded := map[string]bool{"static/app.js": true}
	for _, m := range regexp.MustCompile(`rel="modulepreload" href="assets/{hash}/([^"]+)"`).FindAllStringSubmatch(string(all["static/index.html"].body), -1) {
		preloaded[m[1]] = true
	}
	require.Equal(t, loadedWith(all, "static/app.js", "static/pages/dashboard.js"), preloaded)
}

// The files that the dashboard needs are small, as sent over the wire and without the font.
func TestFirstLoadIsSmall(t *testing.T) {
	const most = 110_000
	all, _ := files()
	seen, bytes := loadedWith(all, "static/index.html", "static/pages/dashboard.js"), 0
	for name := range seen {
		bytes += len(all[name].zipped)
	}
	t.Logf("%d files, %d bytes", len(seen), bytes)
	require.Less(t, bytes, most)
}

func TestVendoredFilesAreUnchanged(t *testing.T) {
	page, err := os.ReadFile("vendor/VENDOR.md")
	require.NoError(t, err)
	listed := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| (\\S+) \\|.*`([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = m[2]
	}
	require.NoError(t, fs.WalkDir(os.DirFS("vendor"), ".", func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() || name == "VENDOR.md" || strings.HasPrefix(name, "LICENSE-") || strings.HasSuffix(name, ".d.ts") {
			return err
		}
		body, err := os.ReadFile(path.Join("vendor", name))
		sum := sha256.Sum256(body)
		require.Equal(t, listed[name], hex.EncodeToString(sum[:]), name)
		delete(listed, name)
		return err
	}))
	require.Empty(t, listed, "these are missing")
}

// No file loads anything from another host, outside of comments.
func TestNothingIsLoadedFromOtherHosts(t *testing.T) {
	all, _ := files()
	address := regexp.MustCompile(`(?i)(?:from|import|src=|href=|url\(|fetch\()\s*\(?\s*["']?(?:https?:)?//`)
	inline := regexp.MustCompile(`(?i)<script>|<style|\son[a-z]+=["']|\sstyle="|innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`)
	for name, f := range all {
		if ext := path.Ext(name); ext == ".js" || ext == ".css" || ext == ".html" {
			require.NotRegexp(t, address, string(f.body), name)
			if strings.HasPrefix(name, "static/") {
				require.NotRegexp(t, inline, string(f.body), name)
			}
		}
	}
}
