package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// route is one line of the API. What it needs stands in it, so that none is ever added that forgot to ask.
//
// A new route is also an operation in openapi.yaml, a row in authorisation_test.go and a line in docs/api.md: tests name what is missing.
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

// table lists everything that can be asked.
func (s *Server) table() []route {
	var all []route
	session := &sessions{s.auth, s.hide, s.cfg.VHost, s.cfg.Environment, s.cfg.ReadOnly}
	for _, set := range entrySets {
		path := "/api/" + set.path
		all = append(all,
			route{get, path, reads, s.list(set.stream)},
			route{get, path + "/:jid", reads, s.show(set.stream)},
			route{del, path + "/:jid", acts, s.command(wire.CommandDelete, set.stream)},
			route{patch, path + "/:jid", acts, s.change(set.stream)},
			route{post, path + "/:jid/undo", acts, s.undo(set.stream)},
		)
	}
	return append(all,
		route{post, "/api/scheduled-jobs/:jid/trigger", acts, s.command(wire.CommandTrigger, wire.ScheduledJobs)},
		route{post, "/api/scheduled-jobs/:jid/kill", acts, s.command(wire.CommandKill, wire.ScheduledJobs)},
		route{post, "/api/retries/:jid/retry", acts, s.command(wire.CommandRetry, wire.Retries)},
		route{post, "/api/retries/:jid/kill", acts, s.command(wire.CommandKill, wire.Retries)},
		route{post, "/api/gated-jobs/:jid/kill", acts, s.command(wire.CommandKill, wire.Gated)},
		route{post, "/api/dead-jobs/:jid/retry", acts, s.command(wire.CommandRetry, wire.DeadJobs)},
		route{post, "/api/release", administer, s.release},

		route{get, "/api/operations", reads, s.listOperations},
		route{post, "/api/operations", acts, s.operate},
		route{get, "/api/operations/:id", reads, s.showOperation},
		route{del, "/api/operations/:id", acts, s.cancelOperation},
		route{post, "/api/operations/:id/undo", acts, s.undoOperation},

		route{get, "/api/journal", reads, s.showJournal},

		route{get, "/api/rejected", reads, s.listRejected},
		route{get, "/api/rejected/:stream/:offset", reads, s.showRejected},
		route{del, "/api/rejected/:stream/:offset", acts, s.dismissRejected},
		route{post, "/api/rejected/:stream/:offset/resubmit", acts, s.resubmitRejected},

		route{get, "/api/processes", reads, s.listProcesses},
		route{get, "/api/processes/:identity", reads, s.showProcess},
		route{put, "/api/processes/:identity/quiet", acts, s.control(wire.ControlQuiet)},
		route{put, "/api/processes/:identity/stop", acts, s.control(wire.ControlStop)},

		route{post, "/api/jobs", acts, s.enqueue},
		route{get, "/api/jobs", reads, s.listRuns},
		route{get, "/api/jobs/:jid", reads, s.showJob},
		route{del, "/api/jobs/:jid", acts, s.deleteJob},
		route{post, "/api/jobs/:jid/cancel", acts, s.cancelJob},
		route{get, "/api/errors", reads, s.listErrors},
		route{get, "/api/due-times", reads, s.listDueTimes},
		route{get, "/api/job-queues", reads, s.listQueues},
		route{get, "/api/job-queues/:queue", reads, s.showQueue},
		route{put, "/api/job-queues/:queue", acts, s.onQueue(wire.NotedMade, makeQueue)},
		route{del, "/api/job-queues/:queue", acts, s.onQueue(wire.NotedRemoved, deleteQueue)},
		route{get, "/api/job-queues/:queue/jobs", acts, s.peekQueue},
		route{del, "/api/job-queues/:queue/jobs", acts, s.onQueue(wire.NotedPurged, purgeQueue)},
		route{put, "/api/job-queues/:queue/pause", acts, s.pauseQueue(wire.CommandPause)},
		route{put, "/api/job-queues/:queue/resume", acts, s.pauseQueue(wire.CommandResume)},
		route{post, "/api/job-queues/:queue/move", acts, s.moveQueue},
		route{post, "/api/job-queues/:queue/move-type", acts, s.moveType},
		route{post, "/api/job-queues/:queue/lease", acts, s.leaseJobs},
		route{post, "/api/leases/:id/ack", acts, s.ackLease},
		route{post, "/api/leases/:id/fail", acts, s.failLease},
		route{post, "/api/leases/:id/extend", acts, s.extendLease},
		route{get, "/api/attention", reads, s.attention},
		route{get, "/api/job-metrics", reads, s.jobMetrics},
		route{get, "/api/job-metrics/:class", reads, s.jobMetrics},
		route{get, "/api/queue-throughput", reads, s.showThroughput},
		route{get, "/api/deploys", reads, s.listDeploys},
		route{post, "/api/deploys", acts, s.addDeploy},

		route{get, "/api/overview", reads, s.overview},
		route{get, "/api/events", reads, s.events.Serve},
		route{get, "/api/health/checks/:check", reads, s.health()},
		route{get, "/api/whoami", reads, session.show},
		route{post, "/api/session", open, session.begin},
		route{del, "/api/session", open, session.end},
		route{get, "/api/openapi.yaml", open, showContract(s.cfg.Prefix)},
		route{get, "/healthz", open, s.healthz},
		route{get, "/readyz", open, s.readyz},
		route{get, "/metrics", reads, echo.WrapHandler(s.exporter.Handler())},
	)
}

func (s *Server) routes() http.Handler {
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) { problem.Write(c.Response(), c.Request(), err) }
	e.Use(noteRoute)
	for _, r := range s.table() {
		handle := s.auth.Admit(r.needs, r.handle)
		e.Add(r.method, r.path, handle)
		if r.method == get {
			e.Add(http.MethodHead, r.path, handle)
		}
	}
	return e
}
