package millrace

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

type sendEmailArgs struct {
	To     string `json:"to"`
	Number int64  `json:"number"`
}

func (sendEmailArgs) Kind() string { return "SendEmail" }

type pointerArgs struct{ Name string }

func (*pointerArgs) Kind() string { return "Pointer" }

type emptyKindArgs struct{}

func (emptyKindArgs) Kind() string { return "" }

// reportArgs has options for all its jobs.
type reportArgs struct{ Year int }

func (reportArgs) Kind() string { return "Report" }

func (reportArgs) EnqueueOptions() EnqueueOptions {
	return EnqueueOptions{Queue: "reports", MaxAttempts: 3, Tags: []string{"slow"}, Fields: map[string]any{"tenant": "all", "locale": "en"}}
}

// A struct is the only arg of a job, when it is enqueued and when it is handled. Additional and
// missing fields are not an error.
func TestStructsAsArgs(t *testing.T) {
	w := NewWorker(WorkerConfig{URL: "amqp://localhost"})
	var got []Job[sendEmailArgs]
	Handle(w, func(ctx context.Context, job *Job[sendEmailArgs]) error {
		require.Same(t, job.RawJob, JobFrom(ctx))
		got = append(got, *job)
		return nil
	}, nil)
	var names []string
	Handle(w, func(_ context.Context, job *Job[*pointerArgs]) error {
		names = append(names, job.Args.Name)
		return nil
	}, nil)

	_, body, err := EnqueueParams{Args: sendEmailArgs{"ann@example.com", 9007199254740993}}.Message(time.Now())
	require.NoError(t, err)
	require.Equal(t, "SendEmail", gjson.GetBytes(body, "class").String())
	require.Equal(t, `[{"to":"ann@example.com","number":9007199254740993}]`, gjson.GetBytes(body, "args").Raw)
	require.NoError(t, w.Perform(t.Context(), body, "mail").Err)
	require.Equal(t, sendEmailArgs{"ann@example.com", 9007199254740993}, got[0].Args)
	require.Equal(t, "mail", got[0].Queue)
	require.NoError(t, w.Perform(t.Context(), []byte(`{"class":"SendEmail","args":[{"to":"bob","of tomorrow":1}],"retry_count":2}`), "mail").Err)
	require.Equal(t, sendEmailArgs{To: "bob"}, got[1].Args)
	require.Equal(t, 3, got[1].Attempt)
	require.ErrorContains(t, w.Perform(t.Context(), []byte(`{"class":"SendEmail","args":["bob",1]}`), "mail").Err, "the handler of SendEmail takes 1 arg, the job has 2")
	require.ErrorContains(t, w.Perform(t.Context(), []byte(`{"class":"SendEmail","args":["bob"]}`), "mail").Err, "arg 1 of SendEmail")
	require.Len(t, got, 2)

	_, body, err = EnqueueParams{Args: &pointerArgs{"cleo"}}.Message(time.Now())
	require.NoError(t, err)
	require.NoError(t, w.Perform(t.Context(), body, "q").Err)
	require.Equal(t, []string{"cleo"}, names)
}

// The options of a kind apply to all its jobs, unless a call sets them.
func TestOptionsOfKind(t *testing.T) {
	members := func(options *EnqueueOptions) gjson.Result {
		r, err := paramsOf(reportArgs{2026}, options).prepare(time.Now())
		require.NoError(t, err)
		require.Equal(t, gjson.GetBytes(r.Body, "queue").String(), r.key)
		return gjson.ParseBytes(r.Body)
	}
	job := members(nil)
	require.Equal(t, "reports", job.Get("queue").String())
	require.Equal(t, "2", job.Get("retry").Raw)
	require.Equal(t, `["slow"]`, job.Get("tags").Raw)
	require.Equal(t, "all", job.Get("tenant").String())

	job = members(&EnqueueOptions{Queue: "urgent", MaxAttempts: 1, Tags: []string{"quick"}, Fields: map[string]any{"tenant": "acme"}})
	require.Equal(t, "urgent", job.Get("queue").String())
	require.Equal(t, "0", job.Get("retry").Raw)
	require.Equal(t, `["quick"]`, job.Get("tags").Raw)
	require.Equal(t, "acme", job.Get("tenant").String())
	require.Equal(t, "en", job.Get("locale").String())
}

// A type that cannot be the args of a handler is refused when the handler is registered.
func TestInvalidArgsTypes(t *testing.T) {
	w := NewWorker(WorkerConfig{URL: "amqp://localhost"})
	for want, register := range map[string]func(){
		"millrace: Handle: the args of a job need a type of their own, and millrace.JobArgs is an interface": func() {
			Handle(w, func(context.Context, *Job[JobArgs]) error { return nil }, nil)
		},
		"millrace: Handle: an ArgList names no class: use the method Worker.Handle": func() {
			Handle(w, func(context.Context, *Job[ArgList]) error { return nil }, nil)
		},
		"millrace: Handle: millrace.emptyKindArgs has an empty Kind": func() {
			Handle(w, func(context.Context, *Job[emptyKindArgs]) error { return nil }, nil)
		},
		"millrace: Handle: the handler of SendEmail is nil": func() { Handle[sendEmailArgs](w, nil, nil) },
	} {
		require.PanicsWithValue(t, want, register)
	}
}
