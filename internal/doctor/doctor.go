package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/streams"
)

// Config says what is examined.
type Config struct {
	Broker    connect.Broker
	API       *apiclient.Client // of the sidecar
	DeliverTo *regexp.Regexp    // the exchanges to which the sidecar delivers messages; nil: none
}

// severity is how bad a finding is.
type severity string

const (
	ok      severity = "ok"
	note    severity = "note" // it works, but could be better or could not be checked
	failure severity = "FAIL"
)

// finding is a result of a check.
type finding struct {
	severity severity
	subject  string
	text     string
	remedy   string // lines
}

// check is one question of an examination.
type check struct {
	name   string // the subject of its findings, unless they name another
	needs  need   // what must be open; nil: nothing
	run    func(*examination, context.Context) error
	remedy string // of its findings that are not ok and have none of their own
}

type need func(*examination) bool

// What a check may need.
var (
	aBroker       need = func(e *examination) bool { return e.conn != nil }
	theManagement need = func(e *examination) bool { return e.mgmt != nil }
	theStreams    need = func(e *examination) bool { return e.streams != nil }
)

// checks are all checks, in the order in which they are made. An error is one of the management
// API.
var checks = []check{
	{name: "broker", run: (*examination).openBroker},
	{name: managementAPI, needs: aBroker, run: (*examination).openManagement},
	{name: "permissions", needs: aBroker, run: (*examination).permissions},
	{name: "alarm", needs: theManagement, run: (*examination).alarms},
	{name: "permissions", needs: theManagement, run: (*examination).othersMayLock},
	{name: "policies", needs: theManagement, run: (*examination).policies},
	{name: "queues", needs: theManagement, run: (*examination).queues},
	{name: "messages", needs: theManagement, run: (*examination).messages},
	{name: "cluster", needs: theManagement, run: (*examination).cluster},
	{name: "user", needs: theManagement, run: (*examination).userIsShared, remedy: "give Millrace a user of its own"},
	{name: "clocks", needs: theManagement, run: (*examination).clocks},
	{name: "streams", needs: aBroker, run: (*examination).openStreams},
	{name: "latency", needs: theStreams, run: (*examination).latency},
	{name: "sidecar", needs: aBroker, run: (*examination).sidecar},
}

const managementAPI = "management API"

// examination is one run of the checks. What could not be opened is nil.
type examination struct {
	cfg      Config
	conn     *broker.Conn
	mgmt     *broker.Management
	streams  streams.Transport
	check    check // the current one
	findings []finding
	// clustered is whether the broker has several nodes, as far as the management API says.
	clustered bool
	listed    []broker.QueueInfo // see allQueues
}

// allQueues returns the queues as the management API lists them. It asks once: there may be many.
func (e *examination) allQueues(ctx context.Context) (all []broker.QueueInfo, err error) {
	if e.listed == nil {
		e.listed, err = e.mgmt.Queues(ctx)
	}
	return e.listed, err
}

// report adds a finding of the current check.
func (e *examination) report(s severity, text, remedy string) {
	if remedy == "" && s != ok {
		remedy = e.check.remedy
	}
	e.reportOn(e.check.name, s, text, remedy)
}

// reportOn adds a finding about a subject.
func (e *examination) reportOn(subject string, s severity, text, remedy string) {
	e.findings = append(e.findings, finding{s, subject, text, remedy})
}

// examine makes all checks whose needs are open.
func (e *examination) examine(ctx context.Context) {
	defer e.close()
	for _, e.check = range checks {
		if e.check.needs != nil && !e.check.needs(e) {
			continue
		}
		if err := e.check.run(e, ctx); err != nil {
			e.reportOn(managementAPI, note, err.Error(), "")
		}
	}
}

func (e *examination) close() {
	if e.streams != nil {
		_ = e.streams.Close()
	}
	if e.mgmt != nil {
		e.mgmt.Close()
	}
	if e.conn != nil {
		_ = e.conn.Close()
	}
}

const timeout = time.Minute

// Run examines the broker and prints the findings. It returns output.ErrReported if one of them is
// an error. permissions has it list the permissions that are needed even if none is missing.
func Run(ctx context.Context, cfg Config, p *output.Printer, permissions bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	e := &examination{cfg: cfg}
	e.examine(ctx)
	if err := printFindings(p, e.findings, permissions); err != nil {
		return err
	}
	for _, f := range e.findings {
		if f.severity == failure {
			return output.ErrReported
		}
	}
	return nil
}

// printFindings prints the findings, and the permissions that are needed if they are asked for or
// missing.
func printFindings(p *output.Printer, findings []finding, permissions bool) error {
	if !p.ForPeople() {
		return printStructured(p, findings)
	}
	for _, f := range findings {
		status := p.Paint(string(f.severity)) + strings.Repeat(" ", 5-len(f.severity))
		if err := p.Note("%s %-15s %s", status, f.subject, f.text); err != nil {
			return err
		}
		for line := range strings.SplitSeq(f.remedy, "\n") {
			if line != "" {
				_ = p.Note("%21s → %s", "", line)
			}
		}
		permissions = permissions || f.subject == "permissions" && f.severity == failure
	}
	if !permissions {
		return nil
	}
	return p.Note("\nPermissions that each needs in the virtual host (regular expressions over names):\n%s", strings.TrimSuffix(roles(), "\n"))
}

// roles lists the permissions that each role needs.
func roles() string {
	var b strings.Builder
	for _, r := range connect.Roles {
		fmt.Fprintf(&b, "\n  %s (%s)\n    configure  %s\n    write      %s\n    read       %s\n", r.Name, r.Note, r.Configure, r.Write, r.Read)
	}
	return b.String()
}

func printStructured(p *output.Printer, findings []finding) error {
	all := []output.Fields{}
	t := &output.Table{Columns: []output.Column{output.State("STATUS"), output.Plain("SUBJECT"), output.Fact("TEXT"), output.Fact("REMEDY")}}
	for _, f := range findings {
		all = append(all, output.Fields{"status": f.severity, "subject": f.subject, "text": f.text, "remedy": f.remedy})
		t.Add(f.severity, f.subject, f.text, f.remedy)
	}
	if !p.Structured() {
		return p.Table(t)
	}
	body, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return p.Answer(body)
}
