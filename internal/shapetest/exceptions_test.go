package shapetest

// listsOfFields are configurations, settings and messages: structs that are lists.
var listsOfFields = []string{
	"broker.Features", "broker.QueueInfo", "broker.queueObject",
	"clients/go.RawJob", "clients/go.WorkerConfig", "clients/go.beat",
	"cmd/millrace.sidecarSettings",
	"httpapi.Config",
	"httpapi/answer.JournalEntry", "httpapi/answer.Operation", "httpapi/answer.Process", "httpapi/answer.Queue", "httpapi/answer.Scheduler",
	"internal/chaoscluster.options", "internal/chaoscluster.result",
	"scheduler.Status", "scheduler.setup", "tracker.State", "tracker/audit.Entry",
	"wire.Command", "wire.Heartbeat", "wire.JournalRecord", "wire.Operation",
}

// exceptions are larger than the limits.
var exceptions = map[string]int{}

// inCircles has how many files of a package use each other in circles.
var inCircles = map[string]int{
	"scheduler": 58,
}
