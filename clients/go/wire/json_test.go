package wire

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// isJSON agrees with the standard library.
func FuzzIsJSON(f *testing.F) {
	for _, text := range []string{"", " ", "{}", `{"a":[1,-0,0.5e-7,1E+9,true,false,null,"\\u00e9\\ud800\\n"]} `, `{"a":01}`, `[1,]`, `{"a":1,}`, `"\x01"`, `"\\x"`,
		"\"\xff\"", "\"\x7f\"", "[1] x", "-", "1.", ".5", "1e", "+1", "nul", "tru e", "{1:2}", `{"a" 1}`, "\ufeff{}", "\v1", `"\\u12g4"`, "[", "{", `"`, "[[[[]]]]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		require.Equal(t, json.Valid(body), isJSON(body))
	})
}

// The vectors for the authors of clients say what each job means, and ParseJob agrees.
func TestJobVectors(t *testing.T) {
	raw, err := os.ReadFile("../../../wire/testdata/jobs.json")
	require.NoError(t, err)
	var vectors []struct {
		Name   string         `json:"name"`
		Record *string        `json:"record"`
		Want   map[string]any `json:"want"`
		Reason string         `json:"reason"`
	}
	require.NoError(t, json.Unmarshal(raw, &vectors))
	require.NotEmpty(t, vectors)
	for _, v := range vectors {
		if v.Record == nil {
			continue // large, or not text: the sidecar's package wire tests those
		}
		job, err := ParseJob([]byte(*v.Record))
		if v.Reason != "" {
			require.EqualError(t, err, v.Reason, v.Name)
			continue
		}
		require.NoError(t, err, v.Name)
		require.Equal(t, *v.Record, string(job.Raw), v.Name)
		tags := []any(nil)
		for _, tag := range job.Tags {
			tags = append(tags, tag)
		}
		got := map[string]any{"jid": job.JID, "class": job.Class, "queue": job.Queue, "retry": float64(job.Retry), "attempt": float64(job.RetryCount),
			"priority": float64(job.Priority), "dead": job.Dead, "tags": tags}
		for name, want := range v.Want {
			if _, read := got[name]; read && want != nil {
				require.Equal(t, want, got[name], "%s: %s", v.Name, name)
			}
		}
	}
}

// An option of a job that has another type is refused, and the error names it.
func TestInvalidJobs(t *testing.T) {
	for body, reason := range map[string]string{
		`{"class":"A","retry":"x"}`:         `job: member "retry" must be a whole number, true or false`,
		`{"class":"A","priority":11}`:       `job: member "priority" must be a whole number from 0 to 10`,
		`{"class":"A","dead":1}`:            `job: member "dead" must be true or false`,
		`{"class":"A","tags":"x"}`:          `job: member "tags" must be an array of strings`,
		`{"class":"A","tags":[1]}`:          `job: member "tags" must be an array of strings`,
		`{"class":"A","expires_at":"x"}`:    `job: member "expires_at" must be a number: seconds since 1970`,
		`{"class":"A","expires_at":-1e300}`: `job: member "expires_at" is out of range: the years 1 to 9999 are allowed`,
		`{"class":"A","jid":1}`:             `job: member "jid" must be a string`,
		`{"class":"A","jid":"\ud800"}`:      `job: member "jid" is not valid Unicode`,
		`{"class":"A","queue":""}`:          `job: queue name is empty`,
		`{"class":"A","\u0071ueue":"a"}`:    `job: member "queue" is written with escapes: write it plainly`,
		`{"class":"A","class":"B"}`:         `job: member "class" appears twice`,
	} {
		_, err := ParseJob([]byte(body))
		require.EqualError(t, err, reason, body)
	}
}
