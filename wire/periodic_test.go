package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeriodicDefinitionsThatAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		`[]`:                                    "not a JSON object",
		`{"evry":60}`:                           `unknown field "evry"`,
		`{"every":0}`:                           `member "every" is a number from 1`,
		`{"catch_up_max":0}`:                    `member "catch_up_max"`,
		`{"cron":null}`:                         `member "cron" is empty`,
		`{"tz":""}`:                             `member "tz" is empty`,
		`{"every":-1}`:                          `member "every"`,
		`{"every":60,"cron":"@daily"}`:          "exclude each other",
		`{"catch_up":"some"}`:                   "use skip, last or all",
		`{"catch_up_max":1001}`:                 "catch_up_max",
		`{"overlap":"queue"}`:                   "use allow or skip",
		`{"except":["24.12.2026"]}`:             "write a date like",
		`{"except":["2026-12-26..2026-12-24"]}`: "write a date like",
		`{"jitter":1e9}`:                        `member "jitter"`,
	} {
		_, err := ParsePeriodic([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
	_, err := ParsePeriodic([]byte(`{"job":{"class":"` + strings.Repeat("x", MaxDefinition) + `"}}`))
	require.ErrorContains(t, err, "at most 65536")
	for text, says := range map[string]string{
		`{"job":{"class":"C"}}`:                      "give cron or every",
		`{"every":60}`:                               "it has no job",
		`{"every":60,"job":{}}`:                      `member "class" is missing`,
		`{"every":60,"job":{"class":"C","jid":"j"}}`: `a member "jid"`,
	} {
		p, err := ParsePeriodic([]byte(text))
		require.NoError(t, err)
		require.ErrorContains(t, p.CheckWhole(), says, text)
	}
}

func TestLayersAreMergedByMember(t *testing.T) {
	merged, err := MergePeriodic(json.RawMessage(`{"every":60,"tz":"UTC","job":{"class":"C","queue":"q"}}`),
		json.RawMessage(`{"cron":"@daily","job":{"queue":"r"}}`), json.RawMessage(`{"paused":true}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"cron":"@daily","tz":"UTC","paused":true,"job":{"class":"C","queue":"r"}}`, string(merged))
}

func TestKeysOfTicks(t *testing.T) {
	name, tick, run, err := ParseTickKey(TickKey("nightly", 1_800_000_000, ""))
	require.NoError(t, err)
	require.Equal(t, "nightly", name)
	require.Equal(t, int64(1_800_000_000), tick)
	require.False(t, run)
	_, _, run, err = ParseTickKey(TickKey("nightly", 1_800_000_000, "id"))
	require.NoError(t, err)
	require.True(t, run)
	_, _, _, err = ParseTickKey("nightly")
	require.Error(t, err)
	require.NotEqual(t, TickJID("a", 1), TickJID("a", 2))
}

func TestDefinitionDocuments(t *testing.T) {
	for text, says := range map[string]string{
		`[1]`:                           "list of objects",
		`[{}]`:                          "has no name",
		`[{"name":"a b"}]`:              "is no name",
		`[{"name":"a"},{"name":"a"}]`:   "defined twice",
		`[{"name":"a","every":"soon"}]`: `periodic job "a"`,
	} {
		d := &Definitions{Source: "s"}
		require.NoError(t, json.Unmarshal([]byte(text), &d.PeriodicJobs))
		_, err := d.Periodics()
		require.ErrorContains(t, err, says, text)
	}
	for text, says := range map[string]string{
		`{"command":"define"}`: "needs definitions",
		`{"command":"define","definitions":{"periodic_jobs":[]}}`:                          "need a source",
		`{"command":"define","definitions":{"source":"s","layer":"x","periodic_jobs":[]}}`: `layer "x"`,
		`{"command":"run","periodic":""}`:                                                  "is no name",
		`{"command":"forget","periodic":"a","layer":"x"}`:                                  `layer "x"`,
	} {
		_, err := ParseCommand([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
}
