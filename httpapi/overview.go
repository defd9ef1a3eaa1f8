package httpapi

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// overview is the state of everything on one page.
type overview struct {
	Product  string             `json:"product_name"`
	Version  string             `json:"product_version"`
	VHost    string             `json:"vhost"`
	Now      float64            `json:"now"` // this machine's clock
	Broker   brokerState        `json:"broker"`
	Leader   leaderState        `json:"leader"`
	Self     scheduler.Status   `json:"scheduler"`
	Sets     map[string]setSize `json:"sets"`
	Overdue  float64            `json:"scheduled_overdue_seconds"` // how long the oldest due entry waits; 0 if none is due
	Views    viewState          `json:"views"`
	Rejected map[string]counts  `json:"rejected"`
	Journal  journalState       `json:"journal"`
	Workers  workerState        `json:"processes"`
	Jobs     jobTotals          `json:"jobs"`
}

// workerState is the sum of all worker processes.
type workerState struct {
	Running     int            `json:"running"` // all that are not lost
	States      map[string]int `json:"states"`
	Concurrency int64          `json:"concurrency"`
	Busy        int64          `json:"busy"`
	RSSKB       int64          `json:"rss_kb"`
}

type brokerState struct {
	Connected bool   `json:"connected"`
	Product   string `json:"product"`
	Version   string `json:"version"`
}

// leaderState is the newest leader that the journal tells of.
type leaderState struct {
	Identity string  `json:"identity"`
	Epoch    int64   `json:"epoch"` // -1: none was ever seen
	Since    float64 `json:"since"`
}

type setSize struct {
	Total  int64   `json:"total"`
	Bytes  int64   `json:"bytes"` // of their records
	AsOf   int64   `json:"as_of"`
	Max    int     `json:"max,omitempty"`             // how many are kept
	MaxAge float64 `json:"max_age_seconds,omitempty"` // how long they are kept
}

type viewState struct {
	CaughtUp bool          `json:"caught_up"`
	Lag      float64       `json:"lag_seconds"`
	Streams  []streamState `json:"streams"`
}

type streamState struct {
	Stream    string  `json:"stream"`
	Position  int64   `json:"position"`
	CaughtUp  bool    `json:"caught_up"`
	Lag       float64 `json:"lag_seconds"`
	Recreated bool    `json:"recreated,omitempty"`
	Fault     string  `json:"fault,omitempty"`
}

type counts struct {
	Kept int64 `json:"kept"`
	Ever int64 `json:"ever"`
}

// journalState is what the journal says was done, by whichever leader.
type journalState struct {
	Fired      int64            `json:"fired"`
	Buried     int64            `json:"buried"`
	Duplicates int64            `json:"duplicates"`
	Void       map[string]int64 `json:"void_records"`
	Held       map[string]int64 `json:"held"` // stream → offset up to which entries are held after a gap
}

func (s *Server) overview(c echo.Context) error {
	if err := problem.NoParams(c); err != nil {
		return err
	}
	o, err := s.overviewAt(s.cfg.Now())
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, o)
}

func (s *Server) overviewAt(now time.Time) (o overview, err error) {
	state := s.cfg.Entries.State()
	o = overview{
		Product: "Millrace", Version: s.cfg.Version, VHost: s.cfg.VHost, Now: wire.Seconds(now), Self: s.cfg.Leader(),
		Leader:  leaderState{state.Identity, state.Epoch, state.OpenedAt},
		Views:   newViewState(s.cfg.View.Status()),
		Journal: journalState{state.Fired, state.Buried, state.Duplicates, state.Void, state.Held},
		Workers: s.workers(),
	}
	o.Broker.Connected, o.Broker.Product, o.Broker.Version = s.cfg.Broker()
	late, err := s.cfg.Entries.Overdue(now)
	if err != nil {
		return o, err
	}
	o.Overdue = late.Seconds()
	if o.Jobs, err = s.jobTotals(now); err != nil {
		return o, err
	}
	if o.Sets, err = s.sets(); err != nil {
		return o, err
	}
	o.Rejected, err = s.rejectedCounts(state.Rejected)
	return o, err
}

func (s *Server) workers() workerState {
	sum := processes.Sum(s.processes())
	return workerState{sum.Processes, sum.States, sum.Concurrency, sum.Busy, sum.RSSKB}
}

func (s *Server) sets() (map[string]setSize, error) {
	sets := map[string]setSize{}
	for _, set := range entrySets {
		size, err := s.setSize(set.stream)
		if err != nil {
			return nil, err
		}
		sets[set.path] = size
	}
	return sets, nil
}

func (s *Server) setSize(stream string) (setSize, error) {
	asOf, err := s.cfg.Entries.Position(stream)
	size := setSize{Total: s.cfg.Entries.Total(stream), Bytes: s.cfg.Entries.Bytes(stream), AsOf: asOf}
	if stream == wire.DeadJobs {
		size.Max, size.MaxAge = s.cfg.DeadMax, s.cfg.DeadAge.Seconds()
	}
	return size, err
}

func (s *Server) rejectedCounts(ever map[string]int64) (map[string]counts, error) {
	kept, err := s.cfg.Entries.RejectedKept()
	if err != nil {
		return nil, err
	}
	all := map[string]counts{}
	for stream, n := range ever {
		all[stream] = counts{Kept: kept[stream], Ever: n}
	}
	return all, nil
}

func newViewState(streams []view.Status) viewState {
	v := viewState{CaughtUp: true}
	var most time.Duration
	for _, t := range streams {
		v.CaughtUp = v.CaughtUp && t.CaughtUp
		most = max(most, t.Lag)
		v.Streams = append(v.Streams, streamState{t.Stream, t.Position, t.CaughtUp, t.Lag.Seconds(), t.Recreated, t.Fault})
	}
	v.Lag = most.Seconds()
	return v
}
