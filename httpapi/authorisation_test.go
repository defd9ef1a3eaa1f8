package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/wire"
)

// row has the least role that may use a route, and how to use it.
type row struct {
	least  auth.Role // "": it is open to all
	target string    // the path, if the route has parameters
	body   string
}

// authorisation has a row for every route.
var authorisation = map[string]row{
	"GET /api/scheduled-jobs":                     {least: auth.Monitoring},
	"GET /api/retries":                            {least: auth.Monitoring},
	"GET /api/dead-jobs":                          {least: auth.Monitoring},
	"GET /api/scheduled-jobs/:jid":                {least: auth.Monitoring, target: "/api/scheduled-jobs/a"},
	"GET /api/retries/:jid":                       {least: auth.Monitoring, target: "/api/retries/a"},
	"GET /api/dead-jobs/:jid":                     {least: auth.Monitoring, target: "/api/dead-jobs/a"},
	"DELETE /api/scheduled-jobs/:jid":             {least: auth.Management, target: "/api/scheduled-jobs/a"},
	"DELETE /api/retries/:jid":                    {least: auth.Management, target: "/api/retries/a"},
	"DELETE /api/dead-jobs/:jid":                  {least: auth.Management, target: "/api/dead-jobs/a"},
	"POST /api/scheduled-jobs/:jid/trigger":       {least: auth.Management, target: "/api/scheduled-jobs/a/trigger"},
	"POST /api/scheduled-jobs/:jid/kill":          {least: auth.Management, target: "/api/scheduled-jobs/a/kill"},
	"POST /api/retries/:jid/retry":                {least: auth.Management, target: "/api/retries/a/retry"},
	"POST /api/retries/:jid/kill":                 {least: auth.Management, target: "/api/retries/a/kill"},
	"POST /api/dead-jobs/:jid/retry":              {least: auth.Management, target: "/api/dead-jobs/a/retry"},
	"PATCH /api/scheduled-jobs/:jid":              {least: auth.Management, target: "/api/scheduled-jobs/a", body: `{"priority":1}`},
	"POST /api/scheduled-jobs/:jid/undo":          {least: auth.Management, target: "/api/scheduled-jobs/a/undo"},
	"PATCH /api/retries/:jid":                     {least: auth.Management, target: "/api/retries/a", body: `{"priority":1}`},
	"POST /api/retries/:jid/undo":                 {least: auth.Management, target: "/api/retries/a/undo"},
	"PATCH /api/dead-jobs/:jid":                   {least: auth.Management, target: "/api/dead-jobs/a", body: `{"priority":1}`},
	"POST /api/dead-jobs/:jid/undo":               {least: auth.Management, target: "/api/dead-jobs/a/undo"},
	"GET /api/gated-jobs":                         {least: auth.Monitoring},
	"GET /api/gated-jobs/:jid":                    {least: auth.Monitoring, target: "/api/gated-jobs/a"},
	"DELETE /api/gated-jobs/:jid":                 {least: auth.Management, target: "/api/gated-jobs/a"},
	"PATCH /api/gated-jobs/:jid":                  {least: auth.Management, target: "/api/gated-jobs/a", body: `{"priority":1}`},
	"POST /api/gated-jobs/:jid/undo":              {least: auth.Management, target: "/api/gated-jobs/a/undo"},
	"POST /api/gated-jobs/:jid/kill":              {least: auth.Management, target: "/api/gated-jobs/a/kill"},
	"GET /api/operations":                         {least: auth.Monitoring},
	"POST /api/operations":                        {least: auth.Management, body: `{"action":"delete","set":"retries","jids":["a"]}`},
	"GET /api/operations/:id":                     {least: auth.Monitoring, target: "/api/operations/a"},
	"POST /api/operations/:id/undo":               {least: auth.Management, target: "/api/operations/a/undo"},
	"DELETE /api/operations/:id":                  {least: auth.Management, target: "/api/operations/a"},
	"POST /api/release":                           {least: auth.Administrator},
	"GET /api/journal":                            {least: auth.Monitoring},
	"GET /api/rejected":                           {least: auth.Monitoring},
	"GET /api/rejected/:stream/:offset":           {least: auth.Monitoring, target: "/api/rejected/retries/1"},
	"DELETE /api/rejected/:stream/:offset":        {least: auth.Management, target: "/api/rejected/retries/1"},
	"POST /api/rejected/:stream/:offset/resubmit": {least: auth.Management, target: "/api/rejected/retries/1/resubmit", body: retry("r", 2_000_000_000, "q", "C", "E")},
	"GET /api/job-queues":                         {least: auth.Monitoring},
	"GET /api/job-queues/:queue":                  {least: auth.Monitoring, target: "/api/job-queues/q"},
	"PUT /api/job-queues/:queue":                  {least: auth.Management, target: "/api/job-queues/q"},
	"DELETE /api/job-queues/:queue":               {least: auth.Management, target: "/api/job-queues/q"},
	"GET /api/job-queues/:queue/jobs":             {least: auth.Management, target: "/api/job-queues/q/jobs"},
	"DELETE /api/job-queues/:queue/jobs":          {least: auth.Management, target: "/api/job-queues/q/jobs"},
	"GET /api/events":                             {least: auth.Monitoring, target: "/api/events?for=0"},
	"PUT /api/job-queues/:queue/pause":            {least: auth.Management, target: "/api/job-queues/q/pause"},
	"PUT /api/job-queues/:queue/resume":           {least: auth.Management, target: "/api/job-queues/q/resume"},
	"POST /api/job-queues/:queue/move":            {least: auth.Management, target: "/api/job-queues/q/move", body: `{"to":"r"}`},
	"POST /api/job-queues/:queue/move-type":       {least: auth.Management, target: "/api/job-queues/q/move-type", body: `{"type":"quorum"}`},
	"POST /api/job-queues/:queue/lease":           {least: auth.Management, target: "/api/job-queues/q/lease", body: `{"max":1}`},
	"POST /api/leases/:id/ack":                    {least: auth.Management, target: "/api/leases/" + someLease + "/ack"},
	"POST /api/leases/:id/fail":                   {least: auth.Management, target: "/api/leases/" + someLease + "/fail", body: `{"error_class":"E"}`},
	"POST /api/leases/:id/extend":                 {least: auth.Management, target: "/api/leases/" + someLease + "/extend", body: `{"lease_ms":1000}`},
	"GET /api/periodic-jobs":                      {least: auth.Monitoring},
	"GET /api/periodic-jobs/:name":                {least: auth.Monitoring, target: "/api/periodic-jobs/a"},
	"GET /api/next-ticks":                         {least: auth.Monitoring, target: "/api/next-ticks?every=60"},
	"PUT /api/periodic-jobs/:name":                {least: auth.Management, target: "/api/periodic-jobs/a", body: `{"every":60,"job":{"class":"C"}}`},
	"DELETE /api/periodic-jobs/:name":             {least: auth.Management, target: "/api/periodic-jobs/a"},
	"PUT /api/periodic-jobs/:name/pause":          {least: auth.Management, target: "/api/periodic-jobs/a/pause"},
	"PUT /api/periodic-jobs/:name/resume":         {least: auth.Management, target: "/api/periodic-jobs/a/resume"},
	"POST /api/periodic-jobs/:name/run":           {least: auth.Management, target: "/api/periodic-jobs/a/run"},
	"POST /api/periodic-jobs/:name/skip":          {least: auth.Management, target: "/api/periodic-jobs/a/skip"},
	"GET /api/governed-queues":                    {least: auth.Monitoring},
	"GET /api/governed-queues/:name":              {least: auth.Monitoring, target: "/api/governed-queues/a"},
	"PUT /api/governed-queues/:name":              {least: auth.Management, target: "/api/governed-queues/a", body: `{}`},
	"DELETE /api/governed-queues/:name":           {least: auth.Management, target: "/api/governed-queues/a"},
	"PUT /api/governed-queues/:name/pause":        {least: auth.Management, target: "/api/governed-queues/a/pause"},
	"PUT /api/governed-queues/:name/resume":       {least: auth.Management, target: "/api/governed-queues/a/resume"},
	"GET /api/limits":                             {least: auth.Monitoring},
	"GET /api/limits/:name":                       {least: auth.Monitoring, target: "/api/limits/a"},
	"PUT /api/limits/:name":                       {least: auth.Management, target: "/api/limits/a", body: `{"concurrency":1}`},
	"DELETE /api/limits/:name":                    {least: auth.Management, target: "/api/limits/a"},
	"PUT /api/limits/:name/pause":                 {least: auth.Management, target: "/api/limits/a/pause"},
	"PUT /api/limits/:name/resume":                {least: auth.Management, target: "/api/limits/a/resume"},
	"GET /api/slots":                              {least: auth.Monitoring},
	"GET /api/unique-keys":                        {least: auth.Monitoring},
	"DELETE /api/unique-keys/:hash":               {least: auth.Management, target: "/api/unique-keys/00000000000000000000000000000000"},
	"POST /api/slots/free":                        {least: auth.Administrator, body: `{"slot":"g.1.2.3.a"}`},
	"GET /api/jobs/:jid/limits":                   {least: auth.Monitoring, target: "/api/jobs/a/limits"},
	"POST /api/definitions":                       {least: auth.Management, body: `{"source":"s","periodic_jobs":[]}`},
	"GET /api/attention":                          {least: auth.Monitoring},
	"GET /api/job-metrics":                        {least: auth.Monitoring},
	"GET /api/job-metrics/:class":                 {least: auth.Monitoring, target: "/api/job-metrics/Mail"},
	"GET /api/queue-throughput":                   {least: auth.Monitoring},
	"GET /api/deploys":                            {least: auth.Monitoring},
	"POST /api/deploys":                           {least: auth.Management, body: `{"label":"v1"}`},
	"GET /api/processes":                          {least: auth.Monitoring},
	"GET /api/processes/:identity":                {least: auth.Monitoring, target: "/api/processes/host:1:"},
	"PUT /api/processes/:identity/quiet":          {least: auth.Management, target: "/api/processes/host:1:/quiet"},
	"PUT /api/processes/:identity/stop":           {least: auth.Management, target: "/api/processes/host:1:/stop"},
	"POST /api/jobs":                              {least: auth.Management, body: `{"class":"C","args":[]}`},
	"GET /api/jobs":                               {least: auth.Monitoring},
	"GET /api/jobs/:jid":                          {least: auth.Monitoring, target: "/api/jobs/a"},
	"POST /api/jobs/:jid/cancel":                  {least: auth.Management, target: "/api/jobs/a/cancel"},
	"DELETE /api/jobs/:jid":                       {least: auth.Management, target: "/api/jobs/a"},
	"POST /api/messages":                          {least: auth.Management, body: `{"exchange":"e","in":60}`},
	"GET /api/messages/exchanges":                 {least: auth.Monitoring},
	"GET /api/errors":                             {least: auth.Monitoring},
	"GET /api/due-times":                          {least: auth.Monitoring},
	"GET /api/health/checks/:check":               {least: auth.Monitoring, target: "/api/health/checks/leader"},
	"GET /api/overview":                           {least: auth.Monitoring},
	"GET /api/whoami":                             {least: auth.Monitoring},
	"POST /api/session":                           {body: `{"name":"administrator","password":"right"}`},
	"DELETE /api/session":                         {},
	"GET /api/openapi.yaml":                       {},
	"GET /healthz":                                {},
	"GET /readyz":                                 {},
	"GET /metrics":                                {least: auth.Monitoring},
}

// someLease is the id of a lease that began long ago.
const someLease = "lease-0-1-ABCDEFGHIJKLMNOPQRSTUVWXYZ"

var strength = map[auth.Role]int{"": 0, auth.Monitoring: 1, auth.Management: 2, auth.Policymaker: 2, auth.Administrator: 3}

// caller is a client that uses routes, with its role and the error of refusals.
type caller struct {
	name    string
	sign    func(w *world, r *http.Request)
	role    auth.Role // of those who are admitted
	refused int       // the status for those who are not, on routes that are not open
	always  func(method string) bool
}

func basic(name, password string) func(*world, *http.Request) {
	return func(_ *world, r *http.Request) { r.SetBasicAuth(name, password) }
}

func never(string) bool { return false }

var callers = []caller{
	{"anonymous", func(*world, *http.Request) {}, "", http.StatusUnauthorized, never},
	{"wrong password", basic("administrator", "wrong"), "", http.StatusUnauthorized, never},
	{"unknown user", basic("stranger", "right"), "", http.StatusUnauthorized, never},
	{"another scheme", func(_ *world, r *http.Request) { r.Header.Set("Authorization", "Bearer right") }, "", http.StatusUnauthorized, never},
	{"expired session", func(w *world, r *http.Request) { r.AddCookie(w.expired) }, "", http.StatusUnauthorized, never},
	{"forged session", func(_ *world, r *http.Request) { r.AddCookie(&http.Cookie{Name: sessionName, Value: "AAAA"}) }, "", http.StatusUnauthorized, never},
	{"no tag", basic("untagged", "right"), "", http.StatusForbidden, never},
	{"no virtual host", basic("elsewhere", "right"), "", http.StatusForbidden, never},
	{"monitoring", basic("monitoring", "right"), auth.Monitoring, 0, never},
	{"management", basic("management", "right"), auth.Management, 0, never},
	{"policymaker", basic("policymaker", "right"), auth.Policymaker, 0, never},
	{"administrator", basic("administrator", "right"), auth.Administrator, 0, never},
	{"session", func(w *world, r *http.Request) { r.AddCookie(w.session("management")) }, auth.Management, 0, never},
	{"foreign origin", func(_ *world, r *http.Request) {
		r.SetBasicAuth("administrator", "right")
		r.Header.Set("Origin", "https://evil.example")
	}, auth.Administrator, http.StatusForbidden, func(method string) bool { return method != http.MethodGet && method != http.MethodHead }},
	{"foreign host", func(_ *world, r *http.Request) {
		r.SetBasicAuth("administrator", "right")
		r.Host = "evil.example"
	}, auth.Administrator, http.StatusForbidden, func(string) bool { return true }},
}

// TestAuthorisation uses every route as every caller. The routes come from the server's list, so
// that a new one without a row fails.
func TestAuthorisation(t *testing.T) {
	w := newSecured(t)
	w.add(wire.Retries, retry("a", 2_000_000_000, "q", "C", "E"))
	w.add(wire.Retries, "garbage")
	for _, route := range w.server.Routes() {
		row, found := authorisation[route]
		require.True(t, found, "%s has no row in the table: add the role that may use it%s", route, howToAddARoute)
		method, target, _ := strings.Cut(route, " ")
		if row.target != "" {
			target = row.target
		}
		methods := []string{method}
		if method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
		for _, c := range callers {
			for _, m := range methods {
				r := request(m, target, row.body)
				c.sign(w, r)
				checkAccess(t, route+" "+m+" as "+c.name, c, row, m, w.send(r))
			}
		}
	}
	require.Len(t, w.server.Routes(), len(authorisation), "the table has a row for a route that does not exist")
}

func checkAccess(t *testing.T, what string, c caller, row row, method string, a answer) {
	t.Helper()
	switch {
	case c.always(method):
		require.Equal(t, c.refused, a.StatusCode, what)
	case strength[c.role] >= strength[row.least]:
		require.NotContains(t, []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusTooManyRequests}, a.StatusCode, "%s %s", what, a.body)
		require.NotContains(t, a.body, "nothing at this path", what)
	case c.role == "":
		require.Equal(t, c.refused, a.StatusCode, what)
	default:
		require.Equal(t, http.StatusForbidden, a.StatusCode, what)
	}
	require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"), what)
	challenged := a.Header.Get("WWW-Authenticate") != ""
	require.Equal(t, a.StatusCode == http.StatusUnauthorized, challenged, what)
}

// A refused command must not have been executed.
func TestRefusedCommandsAreNotSent(t *testing.T) {
	w := newSecured(t)
	for route, row := range authorisation {
		method, target, _ := strings.Cut(route, " ")
		if method == http.MethodGet || row.least == "" {
			continue
		}
		for _, name := range []string{"", "monitoring", "untagged", "elsewhere"} {
			r := request(method, orElse(row.target, target), row.body)
			if name != "" {
				r.SetBasicAuth(name, "right")
			}
			require.Contains(t, []int{401, 403}, w.send(r).StatusCode)
		}
	}
	require.Empty(t, w.commands)
	require.Empty(t, w.published)
}

// Every route that authenticates its caller lists the error for a management API that does not
// answer, as in the contract.
func TestAuthenticatedRoutesListUnavailableError(t *testing.T) {
	w := newSecured(t)
	w.broker.change(func() { w.broker.down = true })
	for route, row := range authorisation {
		if row.least == "" {
			continue
		}
		method, target, _ := strings.Cut(route, " ")
		r := request(method, orElse(row.target, target), row.body)
		r.SetBasicAuth("administrator", "right")
		w.send(r).problem(t, http.StatusServiceUnavailable, "service_unavailable")
	}
	require.Empty(t, w.commands)
}

func TestReadOnlyRefusesChanges(t *testing.T) {
	w := newSecured(t).again(func(c *httpapi.Config) { c.ReadOnly = true })
	for route, row := range authorisation {
		method, target, _ := strings.Cut(route, " ")
		r := request(method, orElse(row.target, target), row.body)
		r.SetBasicAuth("administrator", "right")
		a := w.send(r)
		if method == http.MethodGet && row.least == auth.Monitoring || row.least == "" { // a request that leaves traces is no read
			require.NotEqual(t, http.StatusForbidden, a.StatusCode, route)
			continue
		}
		require.Contains(t, a.problem(t, http.StatusForbidden, "access_refused").Reason, "read-only")
	}
	for _, c := range w.commands {
		require.Equal(t, wire.CommandPing, c.Command)
	}
	require.Empty(t, w.published)
}

func TestActorIsJournaled(t *testing.T) {
	w := newSecured(t)
	for _, sign := range []func(*world, *http.Request){basic("management", "right"), func(w *world, r *http.Request) { r.AddCookie(w.session("management")) }} {
		r := request(http.MethodDelete, "/api/retries/a", "")
		sign(w, r)
		require.Equal(t, http.StatusNoContent, w.send(r).StatusCode)
	}
	require.Len(t, w.commands, 2)
	for _, c := range w.commands {
		require.Equal(t, "management", c.Actor)
	}
	require.Contains(t, w.log.String(), `"user":"management"`)
}

func orElse(text, otherwise string) string {
	if text != "" {
		return text
	}
	return otherwise
}
