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
// docs/api/routes.md: tests name what is missing.
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

func entryRoutes(a *entriesAPI, operations *operationsAPI, rejected *rejectedAPI) []route {
	var all []route
	for _, set := range entrySets {
		path := "/api/" + set.path
		all = append(all,
			route{get, path, reads, writes(a.list(set.stream))},
			route{get, path + "/:jid", reads, writes(a.show(set.stream))},
			route{del, path + "/:jid", acts, done(a.command(wire.CommandDelete, set.stream))},
			route{patch, path + "/:jid", acts, writes(a.change(set.stream))},
			route{post, path + "/:jid/undo", acts, writes(a.undo(set.stream))},
		)
	}
	return append(all,
		route{post, "/api/scheduled-jobs/:jid/trigger", acts, done(a.command(wire.CommandTrigger, wire.ScheduledJobs))},
		route{post, "/api/scheduled-jobs/:jid/kill", acts, done(a.command(wire.CommandKill, wire.ScheduledJobs))},
		route{post, "/api/retries/:jid/retry", acts, done(a.command(wire.CommandRetry, wire.Retries))},
		route{post, "/api/retries/:jid/kill", acts, done(a.command(wire.CommandKill, wire.Retries))},
		route{post, "/api/gated-jobs/:jid/kill", acts, done(a.command(wire.CommandKill, wire.Gated))},
		route{post, "/api/dead-jobs/:jid/retry", acts, done(a.command(wire.CommandRetry, wire.DeadJobs))},
		route{post, "/api/release", administer, done(a.release)},

		route{get, "/api/operations", reads, ok(operations.list)},
		route{post, "/api/operations", acts, writes(operations.create)},
		route{get, "/api/operations/:id", reads, ok(operations.show)},
		route{del, "/api/operations/:id", acts, done(operations.cancel)},
		route{post, "/api/operations/:id/undo", acts, writes(operations.undo)},
		route{get, "/api/rejected", reads, ok(rejected.list)},
		route{get, "/api/rejected/:stream/:offset", reads, ok(rejected.show)},
		route{del, "/api/rejected/:stream/:offset", acts, done(rejected.dismiss)},
		route{post, "/api/rejected/:stream/:offset/resubmit", acts, done(rejected.resubmit)},
	)
}

func workRoutes(jobs *jobsAPI, enqueue *enqueueAPI, messages *messagesAPI, processes *processesAPI, queues *queuesAPI, actions *queueActionsAPI, leases *leasesAPI) []route {
	return []route{
		{post, "/api/jobs", acts, writes(enqueue.enqueue)},
		{get, "/api/jobs", reads, ok(jobs.list)},
		{get, "/api/jobs/:jid", reads, writes(jobs.show)},
		{del, "/api/jobs/:jid", acts, done(jobs.delete)},
		{post, "/api/jobs/:jid/cancel", acts, writes(jobs.cancel)},

		{post, "/api/messages", acts, writes(enqueue.delay)},
		{get, "/api/messages/exchanges", reads, ok(messages.exchanges)},

		{get, "/api/processes", reads, ok(processes.list)},
		{get, "/api/processes/:identity", reads, ok(processes.show)},
		{put, "/api/processes/:identity/quiet", acts, writes(processes.control(wire.ControlQuiet))},
		{put, "/api/processes/:identity/stop", acts, writes(processes.control(wire.ControlStop))},

		{get, "/api/job-queues", reads, ok(queues.list)},
		{get, "/api/job-queues/:queue", reads, ok(queues.show)},
		{put, "/api/job-queues/:queue", acts, done(actions.do(wire.NotedMade, actions.make))},
		{del, "/api/job-queues/:queue", acts, done(actions.do(wire.NotedRemoved, deleteQueue))},
		{get, "/api/job-queues/:queue/jobs", acts, ok(actions.peek)},
		{del, "/api/job-queues/:queue/jobs", acts, ok(actions.purge)},
		{put, "/api/job-queues/:queue/pause", acts, done(actions.pause(wire.CommandPause))},
		{put, "/api/job-queues/:queue/resume", acts, done(actions.pause(wire.CommandResume))},
		{post, "/api/job-queues/:queue/move", acts, ok(actions.move)},
		{post, "/api/job-queues/:queue/move-type", acts, writes(actions.moveType)},

		{post, "/api/job-queues/:queue/lease", acts, writes(leases.take)},
		{post, "/api/leases/:id/ack", acts, done(leases.ack)},
		{post, "/api/leases/:id/fail", acts, done(leases.fail)},
		{post, "/api/leases/:id/extend", acts, done(leases.extend)},
	}
}

func periodicRoutes(a *periodicsAPI) []route {
	return []route{
		{get, "/api/periodic-jobs", reads, ok(a.list)},
		{get, "/api/periodic-jobs/:name", reads, ok(a.show)},
		{get, "/api/next-ticks", reads, ok(a.ticks)},
		{put, "/api/periodic-jobs/:name", acts, done(a.set(periodicDefined))},
		{del, "/api/periodic-jobs/:name", acts, done(a.forget(periodicNamed))},
		{put, "/api/periodic-jobs/:name/pause", acts, done(a.pause(wire.CommandPause, periodicNamed))},
		{put, "/api/periodic-jobs/:name/resume", acts, done(a.pause(wire.CommandResume, periodicNamed))},
		{post, "/api/periodic-jobs/:name/run", acts, writes(a.run)},
		{post, "/api/periodic-jobs/:name/skip", acts, ok(a.skip)},
		{post, "/api/definitions", acts, ok(a.defineAll)},
	}
}

func limitRoutes(a *limitsAPI) []route {
	return []route{
		{get, "/api/limits", reads, ok(a.list)},
		{get, "/api/limits/:name", reads, ok(a.show)},
		{put, "/api/limits/:name", acts, writes(a.set)},
		{del, "/api/limits/:name", acts, done(a.forget(limitNamed))},
		{put, "/api/limits/:name/pause", acts, done(a.pause(wire.CommandPause, limitNamed))},
		{put, "/api/limits/:name/resume", acts, done(a.pause(wire.CommandResume, limitNamed))},
		{get, "/api/slots", reads, ok(a.slots)},
		{post, "/api/slots/free", administer, done(a.free)},
		{get, "/api/jobs/:jid/limits", reads, ok(a.why)},
	}
}

func uniqueRoutes(a *uniqueAPI) []route {
	return []route{
		{get, "/api/unique-keys", reads, ok(a.list)},
		{del, "/api/unique-keys/:hash", acts, done(a.free)},
	}
}

func governedRoutes(a *governedAPI) []route {
	return []route{
		{get, "/api/governed-queues", reads, ok(a.list)},
		{get, "/api/governed-queues/:name", reads, ok(a.show)},
		{put, "/api/governed-queues/:name", acts, writes(a.set)},
		{del, "/api/governed-queues/:name", acts, done(a.forget(governedNamed))},
		{put, "/api/governed-queues/:name/pause", acts, done(a.pause(wire.CommandPause, governedNamed))},
		{put, "/api/governed-queues/:name/resume", acts, done(a.pause(wire.CommandResume, governedNamed))},
	}
}

func insightRoutes(metrics *metricsAPI, audit *auditAPI, failures *failuresAPI, dueTimes *dueTimesAPI, attention *attentionAPI, overview *overviewAPI) []route {
	return []route{
		{get, "/api/job-metrics", reads, ok(metrics.jobs)},
		{get, "/api/job-metrics/:class", reads, ok(metrics.jobs)},
		{get, "/api/queue-throughput", reads, ok(metrics.throughput)},
		{get, "/api/deploys", reads, ok(metrics.deploys)},
		{post, "/api/deploys", acts, writes(metrics.addDeploy)},
		{get, "/api/journal", reads, writes(audit.list)},
		{get, "/api/errors", reads, ok(failures.list)},
		{get, "/api/due-times", reads, ok(dueTimes.list)},
		{get, "/api/attention", reads, ok(attention.list)},
		{get, "/api/overview", reads, ok(overview.show)},
	}
}

func serverRoutes(prefix string, health *healthAPI, sessions *sessionsAPI, events *live.Events, exporter *prom.Exporter) []route {
	return []route{
		{get, "/api/health/checks/:check", reads, writes(health.check())},
		{get, "/healthz", open, ok(health.live)},
		{get, "/readyz", open, writes(health.ready)},
		{get, "/api/whoami", reads, ok(sessions.show)},
		{post, "/api/session", open, ok(sessions.begin)},
		{del, "/api/session", open, done(sessions.end)},
		{get, "/api/openapi.yaml", open, writes(showContract(prefix))},
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
