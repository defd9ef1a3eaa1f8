package wire

import ("testing";"time";"encoding/json")

var benchRec = []byte(`{"type":"scheduled_job","jid":"job-00000001","scheduled_at":1900000000.5,"job":{"class":"SendWelcomeMail","jid":"job-00000001","args":[1,"someone@example.com",{"template":"welcome","locale":"en","note":"what a job carries along, so that it has the size of one"}],"queue":"bench","retry":25,"enqueued_at":1700000000.123,"tags":["mail","welcome"]}}`)

func BenchmarkParse(b *testing.B) { b.ReportAllocs(); for b.Loop() { e, _ := ParseEntry(ScheduledJobs, 1, benchRec); _ = e } }
func BenchmarkBody(b *testing.B) { e, _ := ParseEntry(ScheduledJobs, 1, benchRec); b.ReportAllocs(); for b.Loop() { _, _ = e.Body(time.Now()) } }
func BenchmarkValid(b *testing.B) { for b.Loop() { _ = json.Valid(benchRec) } }
func BenchmarkObject(b *testing.B) { s:=string(benchRec); b.ReportAllocs(); for b.Loop() { _,_ = parseObject(s, entryMembers) } }
