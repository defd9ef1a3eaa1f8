package readmetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// recipe is a section of docs/importing.md about one system.
type recipe struct {
	seed string   // what fills the system, in testdata/importing
	more []string // blocks that the command of the section uses
	// groups are the jobs as the dry run counts them: state, class, queue and number.
	groups []string
	has    []string // parts of the lines as they are entered
}

var recipes = map[string]recipe{
	"resque": {"resque.redis", []string{"resque.lua"},
		[]string{"dead SendEmail mails 1", "due SendEmail mails 2", "scheduled Report reports 1"},
		[]string{`"args":[9007199254740993]`, `"at":4102444800,`, `"died_at":1795158930,"error_class":"Timeout","error_message":"late","backtrace":"a\nb"`}},
	"rq": {"rq_seed.py", []string{"rq_jobs.py"},
		[]string{"dead no_such_module.fail mails 1", "due app.send_email mails 1", "scheduled app.report mails 1"},
		[]string{`"jid":"rq-1","class":"app.send_email","args":[9007199254740993, {"subject": "Hello"}]`, `"at":4102444800,`, `"error_message":"Traceback`}},
	"celery": {"celery_seed.py", []string{"celery_tasks.py"},
		[]string{"due app.send_email celery 2", "scheduled app.report celery 1"},
		[]string{`"jid":"celery-1","class":"app.send_email","args":[9007199254740993, {"subject": "Hello"}]`, `"at":4102444800,`}},
	"bullmq": {"bullmq.redis", []string{"bullmq.lua"},
		[]string{"dead SendEmail mails 1", "due SendEmail mails 2", "scheduled SendEmail mails 1"},
		[]string{`"jid":"mails-1","class":"SendEmail","args":[{"n":9007199254740993}],"queue":"mails","retry":2`, `"at":4102444800,`,
			`"died_at":1795158930.25,"retry_count":3,"error_message":"late","backtrace":"Error: late"`}},
	"oban": {"oban.sql", []string{"oban.sql"},
		[]string{"dead MyApp.Report default 1", "due MyApp.SendEmail mails 1", "retry MyApp.Report default 1", "scheduled MyApp.Report default 1"},
		[]string{`"jid":"oban-1","class":"MyApp.SendEmail","args":[{"n": 9007199254740993}],"queue":"mails","priority":10,"retry":19`,
			`"tags":["urgent"]`, `"at":4102444800,`, `"retry_at":4102444800,"retry_count":2,"error_message":"late"`, `"died_at":1795158930.25,`}},
	"river": {"river.sql", []string{"river.sql"},
		[]string{"dead report default 1", "due send_email mails 1", "retry report default 1", "scheduled report default 1"},
		[]string{`"args":[{"n": 9007199254740993}],"queue":"mails","priority":10`, `"at":4102444800,`, `"died_at":1795158930.25,`}},
	"goodjob": {"goodjob.sql", []string{"goodjob.sql"},
		[]string{"dead ReportJob mails 1", "retry ReportJob mails 1", "scheduled ReportJob mails 1", "scheduled WelcomeJob mails 1"},
		[]string{`"jid":"a-1","class":"WelcomeJob","args":[{"job_class": "WelcomeJob", "job_id": "a-1"`, `"error_message":"Timeout: late"`}},
	"delayed_job": {"delayed_job.sql", []string{"delayed_job.sql", "delayed_job.rb"},
		[]string{"dead Delayed::PerformableMethod default 1", "retry NewsletterJob default 1", "scheduled WelcomeJob mails 1"},
		[]string{`"jid":"delayed-1","class":"WelcomeJob","args":[{"job_class":"WelcomeJob"`, `"arguments":[9007199254740993]`,
			`"args":[{"text":"Hello","emails":["ann@example.com"]}]`, `"method_name":"deliver"`}},
	"tables": {"tables.sql", []string{"tables.sql"},
		[]string{"due BuildReport reports 1", "due IndexRow search 2", "due SendEmail email 1", "due SendSMS sms 1", "scheduled CallWebhook hooks 1", "scheduled SendEmail email 1"},
		[]string{`"jid":"email-1","class":"SendEmail","args":[{"to":"ann@example.com","subject":"Hello","body":"Dear Ann"}],"queue":"email","priority":5`,
			`"report":9007199254740993`, `"payload":"{\"n\":9007199254740993}"`, `"at":4102444800.5,`}},
}

// Every recipe of the page prints the jobs of its system, and its map enters all of them.
func TestImportingRecipes(t *testing.T) {
	blocks := readmeBlocks(t, "docs/importing.md")
	ran := map[string]bool{"first.sh": true, "rows.yaml": true, "rows.ndjson": true, "rejected.ndjson": true} // TestImportingPage
	s := serve(t)
	for name, r := range recipes {
		for _, file := range append([]string{name + ".sh", name + ".yaml"}, r.more...) {
			require.Contains(t, blocks, file)
			ran[file] = true
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range append([]string{name + ".yaml"}, r.more...) {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(blocks[file]), 0o600))
			}
			env := r.fill(t, dir)
			said := s.shell(t, dir, env, blocks[name+".sh"])
			require.Regexp(t, `^\d+ jobs entered, 0 refused\n$`, said)

			plan := s.shell(t, dir, env, "millrace import "+name+".ndjson --name again --map "+name+".yaml --dry-run -o json")
			var groups []string
			for _, g := range gjson.Get(plan, "groups").Array() {
				groups = append(groups, strings.Join([]string{g.Get("state").Str, g.Get("class").Str, g.Get("queue").Str, g.Get("jobs").Raw}, " "))
			}
			require.Equal(t, r.groups, groups)
			entered := ""
			for n := range strings.Count(textOf(t, filepath.Join(dir, name+".ndjson")), "\n") {
				entered += s.shell(t, dir, env, "sed -n "+strconv.Itoa(n+1)+"p "+name+".ndjson | millrace import --name again --map "+name+".yaml --dry-run")
			}
			for _, part := range r.has {
				require.Contains(t, entered, part)
			}
		})
	}
	for name := range blocks {
		require.True(t, ran[name], "no test runs %s", name)
	}
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// The examples at the top of the page do what it says.
func TestImportingPage(t *testing.T) {
	blocks := readmeBlocks(t, "docs/importing.md")
	s, dir := serve(t), t.TempDir()
	said := s.shell(t, dir, nil, blocks["first.sh"])
	require.Contains(t, said, "2 jobs would be entered, nothing was\n")
	require.Contains(t, said, "2 jobs entered, 0 refused\n")
	brokertest.Eventually(t, func() bool {
		return strings.Contains(s.shell(t, dir, nil, "millrace export scheduled"), `"jid":"mail-18"`)
	}, "the scheduled job is listed")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "rows.yaml"), []byte(blocks["rows.yaml"]), 0o600))
	object, job, found := strings.Cut(strings.TrimSpace(blocks["rows.ndjson"]), "\n")
	require.True(t, found)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rows.ndjson"), []byte(object), 0o600))
	plan := s.shell(t, dir, nil, "millrace import rows.ndjson --name shop --map rows.yaml --dry-run")
	require.Contains(t, plan, `"at":4070937600,"job":`+job+"}\n")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.ndjson"), []byte("\n"+gjson.Get(blocks["rejected.ndjson"], "input").Raw), 0o600))
	_ = s.shell(t, dir, nil, "millrace import bad.ndjson --name shop --rejected bad.rejected || true")
	require.Equal(t, blocks["rejected.ndjson"], textOf(t, filepath.Join(dir, "bad.rejected")))
}

// shell runs commands of the page, with millrace and what env has.
func (s *sidecar) shell(t *testing.T, dir string, env []string, commands string) string {
	t.Helper()
	cmd := s.command(t, "sh", "-e", "-c", commands)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "PATH="+dir+":"+filepath.Join(s.bin, "bin")+":/usr/bin:/bin")
	cmd.Env = append(cmd.Env, env...)
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	require.NoError(t, err, "%s\n%s%s", commands, out, failed.String())
	return string(out)
}

// fill fills the system from which the recipe reads, and returns the environment of its commands.
func (r *recipe) fill(t *testing.T, dir string) (env []string) {
	t.Helper()
	seed := filepath.Join(root, "internal", "readmetest", "testdata", "importing", r.seed)
	if filepath.Ext(r.seed) == ".sql" {
		tool(t, dir, nil, "sh", "-c", "sqlite3 app.db < "+seed)
		return nil
	}
	_, port, _ := strings.Cut(startRedis(t), ":")
	wrapper := "#!/bin/sh\nexec /usr/bin/redis-cli -p " + port + " \"$@\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "redis-cli"), []byte(wrapper), 0o700))
	env = []string{"REDIS_URL=redis://127.0.0.1:" + port}
	if filepath.Ext(r.seed) == ".py" {
		tool(t, t.TempDir(), env, "/usr/bin/python3", seed)
	} else {
		said := tool(t, dir, nil, "sh", "-c", "./redis-cli < "+seed)
		require.NotContains(t, said, "ERR")
	}
	return env
}

// startRedis runs a private Redis until the test ends, and returns its address.
func startRedis(t *testing.T) string {
	t.Helper()
	addr := freeAddr(t)
	_, port, _ := strings.Cut(addr, ":")
	start(t, exec.CommandContext(t.Context(), "/usr/bin/redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()))
	brokertest.Eventually(t, func() bool {
		return exec.CommandContext(t.Context(), "/usr/bin/redis-cli", "-p", port, "ping").Run() == nil
	}, "Redis answers")
	return addr
}
