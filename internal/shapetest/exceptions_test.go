package shapetest

// listsOfFields are configurations, settings and messages: structs that are lists.
var listsOfFields = []string{
	"broker.Features", "broker.QueueInfo", "broker.queueObject",
	"clients/go.RawJob", "clients/go.WorkerConfig", "clients/go.beat",
	"cmd/millrace.sidecarSettings",
	"httpapi.Config", "httpapi.auditEntry", "httpapi.jobQueue", "httpapi.operation", "httpapi.process",
	"internal/chaoscluster.options", "internal/chaoscluster.result",
	"scheduler.Status", "tracker.State",
	"wire.Command", "wire.Heartbeat", "wire.JournalRecord", "wire.Operation",
}

// unwrapped are packages with comments that are wider than the limit.
var unwrapped = []string{"scheduler", "tracker"}

// exceptions are larger than the limits.
var exceptions = map[string]int{
	"fields of broker.Conn":                 17,
	"fields of clients/go.Worker":           19,
	"fields of internal/chaoscluster.world": 20,
	"fields of scheduler.Scheduler":         36,
	"fields of scheduler.core":              39,
	"fields of scheduler.item":              26,
	"fields of scheduler.lane":              25,
	"fields of scheduler.leadership":        22,
	"fields of scheduler.setup":             17,
	"fields of scheduler.way":               17,
	"fields of tracker.Entries":             25,
	"fields of tracker/metrics.Metrics":     24,
	"fields of view.tail":                   29,
	"file internal/chaoscluster/rows.go":    533,
	"file scheduler/core.go":                504,
	"file scheduler/lead.go":                478,
	"file scheduler/model_test.go":          933,
	"file scheduler/movetype.go":            551,
	"file scheduler/settle.go":              427,
	"file tracker/fold_test.go":             695,
	"file tracker/interleave_test.go":       706,
	"function TestEveryInterleavingIsOneView in scheduler/interleavings_test.go": 151,
	"function TestLeases in cmd/millrace/lease_test.go":                          120,
	"function TestReports in clients/gotest/report_test.go":                      115,
	"function empty in scheduler/movetype.go":                                    62,
	"function foldEntry in tracker/fold_entry.go":                                76,
	"function foldType in tracker/fold_journal.go":                               74,
	"function lead in scheduler/lead.go":                                         76,
	"function processNext in scheduler/model_test.go":                            104,
	"function watchSilence in scheduler/silence.go":                              66,
	"methods of broker.Conn":                                                     65,
	"methods of clients/conformance.trial":                                       62,
	"methods of scheduler.Scheduler":                                             73,
	"methods of scheduler.core":                                                  197,
	"methods of scheduler.leadership":                                            42,
	"methods of tracker.Entries":                                                 165,
	"methods of tracker/metrics.Metrics":                                         56,
	"methods of view.tail":                                                       42,
}
