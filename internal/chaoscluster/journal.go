package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// journal is the content of job_journal that concerns fires.
type journal struct {
	written  map[fire]int64 // the offset of each fire's record
	confirms map[int64][]confirm
	// returned has the fires with a nack or no answer. A confirm that covers such a fire does not
	// prove that it arrived.
	returned map[fire]bool
	opened   []string // the identity that opened each epoch, in order
}

// confirm is the range that one record confirms for an epoch.
type confirm struct {
	offset, through int64
	above           [][2]int64
}

func newJournal() *journal {
	return &journal{written: map[fire]int64{}, confirms: map[int64][]confirm{}, returned: map[fire]bool{}}
}

// knew reports whether the leader that sent the second fire knew from the journal that the first
// was confirmed. It may not have read yet what the first leader wrote after its successor had
// begun.
func (j *journal) knew(first, second fire) bool {
	at, said := j.confirmedAt(first)
	if !said || j.returned[first] {
		return false
	}
	read := j.offset(second)
	if at > second.epoch {
		read -= window
	}
	return at < read
}

// confirmedAt returns the offset of the first record that confirms a fire.
func (j *journal) confirmedAt(f fire) (offset int64, said bool) {
	for _, c := range j.confirms[f.epoch] {
		if f.seq <= c.through || slices.ContainsFunc(c.above, func(r [2]int64) bool { return r[0] <= f.seq && f.seq <= r[1] }) {
			return c.offset, true
		}
	}
	return 0, false
}

// offset returns where a fire is written. A fire that is not written counts as the last.
func (j *journal) offset(f fire) int64 {
	if offset, ok := j.written[f]; ok {
		return offset
	}
	return math.MaxInt64
}

// known has the members of a record's body that matter here.
type known struct {
	Type     string `json:"type"`
	Epoch    int64  `json:"epoch"`
	Seq      int64  `json:"seq"`
	Identity string `json:"identity"`
	Through  int64  `json:"through"`
	Above    string `json:"above"`
	Known    *struct {
		Epoch   int64  `json:"epoch"`
		Through int64  `json:"through"`
		Above   string `json:"above"`
	} `json:"known_confirmed"`
}

// read adds one record.
func (j *journal) read(offset int64, headers map[string]any, body []byte) {
	if f, ok := fireOf(headers); ok {
		j.written[f] = offset
	}
	through, said := whole(headers["millrace-confirmed"])
	above, _ := headers["millrace-above"].(string)
	epoch, hasEpoch := whole(headers["millrace-epoch"])
	if said && hasEpoch {
		j.confirm(epoch, offset, through, above)
	}
	if headers["millrace-op"] != nil { // the body is a job or a probe
		return
	}
	var k known
	if json.Unmarshal(body, &k) != nil {
		return
	}
	if k.Type == "confirmed" {
		j.confirm(k.Epoch, offset, k.Through, k.Above)
	}
	if k.Type == "returned" {
		j.returned[fire{k.Epoch, k.Seq}] = true
	}
	if k.Type == "opened" {
		j.opened = append(j.opened, k.Identity)
		if k.Known != nil {
			j.confirm(k.Known.Epoch, offset, k.Known.Through, k.Known.Above)
		}
	}
}

func (j *journal) confirm(epoch, offset, through int64, above string) {
	j.confirms[epoch] = append(j.confirms[epoch], confirm{offset, through, ranges(above)})
}

// ranges parses "7,1126-5193".
func ranges(text string) (all [][2]int64) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, run := strings.Cut(part, "-")
		if !run {
			last = first
		}
		a, err := strconv.ParseInt(first, 10, 64)
		b, err2 := strconv.ParseInt(last, 10, 64)
		if err == nil && err2 == nil {
			all = append(all, [2]int64{a, b})
		}
	}
	return all
}

// readJournal reads the whole journal. No sidecar may be running.
func readJournal(ctx context.Context, conn *amqp.Connection) (*journal, error) {
	j := newJournal()
	return j, readStream(ctx, conn, "job_journal", j.read)
}

// readStored returns how often scheduled_jobs has each entry of a client, by jid.
func readStored(ctx context.Context, conn *amqp.Connection) (map[string]int, error) {
	stored := map[string]int{}
	return stored, readStream(ctx, conn, "scheduled_jobs", func(_ int64, headers map[string]any, body []byte) {
		if jid, published := publishedJID(headers, body); published {
			stored[jid]++
		}
	})
}

// publishedJID returns the jid of an entry, unless Millrace itself appended the entry.
func publishedJID(headers map[string]any, body []byte) (string, bool) {
	for name := range headers {
		if strings.HasPrefix(name, "millrace-") {
			return "", false
		}
	}
	var entry struct {
		JID string `json:"jid"`
	}
	return entry.JID, json.Unmarshal(body, &entry) == nil && entry.JID != ""
}

// endMark is a record that this program appends to a stream, to know when it has read everything.
const endMark = `{"type":"chaoscluster-end"}`

// readStream reads a whole stream.
func readStream(ctx context.Context, conn *amqp.Connection, stream string, each func(offset int64, headers map[string]any, body []byte)) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := publishConfirmed(ctx, ch, stream, []byte(endMark)); err != nil {
		return fmt.Errorf("marking the end of %s: %w", stream, err)
	}
	const ahead = 500
	if err := ch.Qos(ahead, 0, false); err != nil {
		return err
	}
	records, err := ch.ConsumeWithContext(ctx, stream, "", false, false, false, false, amqp.Table{"x-stream-offset": "first"})
	if err != nil {
		return fmt.Errorf("reading %s: %w", stream, err)
	}
	for n := 1; ; n++ {
		select {
		case d, ok := <-records:
			if !ok {
				return fmt.Errorf("reading %s: the channel was closed", stream)
			}
			if string(d.Body) == endMark {
				return nil
			}
			offset, _ := whole(d.Headers["x-stream-offset"])
			each(offset, d.Headers, d.Body)
			if n%(ahead/2) == 0 {
				if err := d.Ack(true); err != nil {
					return err
				}
			}
		case <-time.After(time.Minute):
			return fmt.Errorf("reading %s: no record came for a minute", stream)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func publishConfirmed(ctx context.Context, ch *amqp.Channel, queue string, bodies ...[]byte) error {
	if err := ch.Confirm(false); err != nil {
		return err
	}
	var all []*amqp.DeferredConfirmation
	for _, body := range bodies {
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	for _, c := range all {
		if ok, err := c.WaitContext(ctx); err != nil || !ok {
			return errors.Join(err, errors.New("the broker did not confirm"))
		}
	}
	return nil
}
