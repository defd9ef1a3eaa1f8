package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/live"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/httpapi/prom"
	"github.com/millrace-jobs/millrace/wire"
)

// route is one line of the API. Its access is part of it, so that no route can be added without.
//
// A new route is also an operation in openapi.yaml, a row in authorisation_test.go and a line in
// docs/api.md: tests name what is missing.
type route struct {
	method string // GET answers HEAD too
	path   string // without the prefix
	needs  auth.Access
	handle echo.HandlerFunc
}

// Methods and levels of access, short enough for a table.
const (
	get   = http.MethodGet
	post  = http.MethodPost
	del   = http.MethodDelete
	put   = http.MethodPut
	patch = http.MethodPatch

	open       = auth.Open
	reads      = auth.Read
	acts       = auth.Act
	administer = auth.Administer
)

func entryRoutes(a *entriesAPI) []route {
	var all []route
	for _, set := range entrySets {
		path := "/api/" + set.path
		all = append(all,
			route{get, path, reads, a.list(set.stream)},
			route{get, path + "/:jid", reads, a.show(set.stream)},
			route{del, path + "/:jid", acts, a.command(wire.CommandDelete, set.stream)},
			route{patch, path + "/:jid", acts, a.change(set.stream)},
			route{post, path + "/:jid/undo", acts, a.undo(set.stream)},
		)
	}
	return append(all,
		route{post, "/api/scheduled-jobs/:jid/trigger", acts, a.command(wire.CommandTrigger, wire.ScheduledJobs)},
		route{post, "/api/scheduled-jobs/:jid/kill", acts, a.command(wire.CommandKill, wire.ScheduledJobs)},
		route{post, "/api/retries/:jid/retry", acts, a.command(wire.CommandRetry, wire.Retries)},
		route{post, "/api/retries/:jid/kill", acts, a.command(wire.CommandKill, wire.Retries)},
		route{post, "/api/gated-jobs/:jid/kill", acts, a.command(wire.CommandKill, wire.Gated)},
		route{post, "/api/dead-jobs/:jid/retry", acts, a.command(wire.CommandRetry, wire.DeadJobs)},
		route{post, "/api/release", administer, a.release},
	)
}

func operationRoutes(a *operationsAPI) []route {
	return []route{
		{get, "/api/operations", reads, a.list},
		{post, "/api/operations", acts, a.create},
		{get, "/api/operations/:id", reads, a.show},
		{del, "/api/operations/:id", acts, a.cancel},
		{post, "/api/operations/:id/undo", acts, a.undo},
	}
}

func rejectedRoutes(a *rejectedAPI) []route {
	return []route{
		{get, "/api/rejected", reads, a.list},
		{get, "/api/rejected/:stream/:offset", reads, a.show},
		{del, "/api/rejected/:stream/:offset", acts, a.dismiss},
		{post, "/api/rejected/:stream/:offset/resubmit", acts, a.resubmit},
	}
}

func processRoutes(a *processesAPI) []route {
	return []route{
		{get, "/api/processes", reads, a.list},
		{get, "/api/processes/:identity", reads, a.show},
		{put, "/api/processes/:identity/quiet", acts, a.control(wire.ControlQuiet)},
		{put, "/api/processes/:identity/stop", acts, a.control(wire.ControlStop)},
	}
}

func jobRoutes(a *jobsAPI, enqueue *enqueueAPI) []route {
	return []route{
		{post, "/api/jobs", acts, enqueue.enqueue},
		{get, "/api/jobs", reads, a.runs.list},
		{get, "/api/jobs/:jid", reads, a.show},
		{del, "/api/jobs/:jid", acts, a.delete},
		{post, "/api/jobs/:jid/cancel", acts, a.cancel},
	}
}

func queueRoutes(a *queuesAPI, actions *queueActionsAPI) []route {
	return []route{
		{get, "/api/job-queues", reads, a.list},
		{get, "/api/job-queues/:queue", reads, a.show},
		{put, "/api/job-queues/:queue", acts, actions.do(wire.NotedMade, makeQueue)},
		{del, "/api/job-queues/:queue", acts, actions.do(wire.NotedRemoved, deleteQueue)},
		{get, "/api/job-queues/:queue/jobs", acts, actions.peek},
		{del, "/api/job-queues/:queue/jobs", acts, actions.do(wire.NotedPurged, purgeQueue)},
		{put, "/api/job-queues/:queue/pause", acts, actions.pause(wire.CommandPause)},
		{put, "/api/job-queues/:queue/resume", acts, actions.pause(wire.CommandResume)},
		{post, "/api/job-queues/:queue/move", acts, actions.move},
		{post, "/api/job-queues/:queue/move-type", acts, actions.moveType},
	}
}

func leaseRoutes(a *leasesAPI) []route {
	return []route{
		{post, "/api/job-queues/:queue/lease", acts, a.take},
		{post, "/api/leases/:id/ack", acts, a.ack},
		{post, "/api/leases/:id/fail", acts, a.fail},
		{post, "/api/leases/:id/extend", acts, a.extend},
	}
}

func metricRoutes(a *metricsAPI) []route {
	return []route{
		{get, "/api/job-metrics", reads, a.jobs},
		{get, "/api/job-metrics/:class", reads, a.jobs},
		{get, "/api/queue-throughput", reads, a.throughput},
		{get, "/api/deploys", reads, a.deploys},
		{post, "/api/deploys", acts, a.addDeploy},
	}
}

func insightRoutes(audit *auditAPI, failures *failuresAPI, dueTimes *dueTimesAPI, attention *attentionAPI, overview *overviewAPI) []route {
	return []route{
		{get, "/api/journal", reads, audit.list},
		{get, "/api/errors", reads, failures.list},
		{get, "/api/due-times", reads, dueTimes.list},
		{get, "/api/attention", reads, attention.list},
		{get, "/api/overview", reads, overview.show},
	}
}

func healthRoutes(a *healthAPI) []route {
	return []route{
		{get, "/api/health/checks/:check", reads, a.check()},
		{get, "/healthz", open, a.live},
		{get, "/readyz", open, a.ready},
	}
}

func sessionRoutes(a *sessionsAPI) []route {
	return []route{
		{get, "/api/whoami", reads, a.show},
		{post, "/api/session", open, a.begin},
		{del, "/api/session", open, a.end},
	}
}

func otherRoutes(prefix string, events *live.Events, exporter *prom.Exporter) []route {
	return []route{
		{get, "/api/openapi.yaml", open, showContract(prefix)},
		{get, eventsPath, reads, events.Serve},
		{get, "/metrics", reads, echo.WrapHandler(exporter.Handler())},
	}
}

// router returns a handler of the routes, for users whom the authenticator admits.
func router(routes []route, authenticator *auth.Authenticator) http.Handler {
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) { problem.Write(c.Response(), c.Request(), err) }
	e.Use(noteRoute)
	for _, r := range routes {
		handle := authenticator.Admit(r.needs, r.handle)
		e.Add(r.method, r.path, handle)
		if r.method == get {
			e.Add(http.MethodHead, r.path, handle)
		}
	}
	return e
}
