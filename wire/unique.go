package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Unique says which jobs count as the same as a job.
type Unique = shared.Unique

// UniqueID names the key of a unique job: a key that the producer gave, or a hash of parts of the
// job. The two never are the same.
type UniqueID string

const (
	givenKey  = "key:"
	hashedKey = "by:"
)

// UniqueKey returns the id of a key that a producer gives.
func UniqueKey(key string) UniqueID { return UniqueID(givenKey + key) }

// Given returns the key that the producer gave, empty if it gave none.
func (id UniqueID) Given() string {
	key, given := strings.CutPrefix(string(id), givenKey)
	if !given {
		return ""
	}
	return key
}

// Hash returns the id as the API and the command line name it.
func (id UniqueID) Hash() string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

// CheckUniqueHash returns an error if no id has this hash.
func CheckUniqueHash(text string) error {
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != 16 || strings.ToLower(text) != text {
		return fmt.Errorf("%q is no hash of a key: it has 32 hexadecimal digits", Shorten(text, 40))
	}
	return nil
}

// UniqueIDOf returns the id of a job's key, empty if the job is not unique.
func UniqueIDOf(job *Job) UniqueID {
	u := job.Unique
	switch {
	case u == nil:
		return ""
	case u.Key != "":
		return UniqueKey(u.Key)
	}
	h := sha256.New()
	for _, part := range u.By {
		c := canonical{h}
		c.text(part)
		switch part {
		case "class":
			c.text(job.Class)
		case "queue":
			c.text(job.Queue)
		case "jid":
			c.text(job.JID)
		default:
			c.value(at(gjson.ParseBytes(job.Raw), strings.Split(part, ".")))
		}
	}
	return UniqueID(hashedKey + hex.EncodeToString(h.Sum(nil)[:16]))
}

// at returns the value at a path, which does not exist if there is none.
func at(v gjson.Result, path []string) gjson.Result {
	for _, step := range path {
		v = Within(v, step)
	}
	return v
}

// Within returns the item of an array or the member of an object that a step of a path names. The
// result does not exist if there is none. Of members with the same name it returns the last, which
// is the one that most parsers read.
func Within(v gjson.Result, step string) (found gjson.Result) {
	if v.IsObject() {
		v.ForEach(func(key, member gjson.Result) bool {
			if TextOf(key) == step {
				found = member
			}
			return true
		})
		return found
	}
	left, err := strconv.Atoi(step)
	if !v.IsArray() || err != nil || strconv.Itoa(left) != step {
		return found
	}
	v.ForEach(func(_, item gjson.Result) bool {
		if left == 0 {
			found = item
		}
		left--
		return left >= 0
	})
	return found
}

// canonical writes values so that equal ones have equal bytes: without white space, the members of
// objects in order, texts without escapes, and numbers as they are spelled.
type canonical struct{ hash.Hash }

func (c canonical) text(s string) {
	c.Write(binary.AppendUvarint([]byte{'"'}, uint64(len(s))))
	c.Write([]byte(s))
}

func (c canonical) value(v gjson.Result) {
	switch {
	case !v.Exists():
		c.Write([]byte{0})
	case v.Type == gjson.String:
		c.text(TextOf(v))
	case v.IsObject():
		c.object(v)
	case v.IsArray():
		c.Write([]byte{'['})
		v.ForEach(func(_, item gjson.Result) bool {
			c.value(item)
			return true
		})
		c.Write([]byte{']'})
	default:
		c.Write(append([]byte(v.Raw), ','))
	}
}

func (c canonical) object(v gjson.Result) {
	type member struct {
		name  string
		value gjson.Result
	}
	var all []member
	v.ForEach(func(key, value gjson.Result) bool {
		all = append(all, member{TextOf(key), value})
		return true
	})
	slices.SortStableFunc(all, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	c.Write([]byte{'{'})
	for i, m := range all {
		if i+1 < len(all) && all[i+1].name == m.name { // the last one counts
			continue
		}
		c.text(m.name)
		c.value(m.value)
	}
	c.Write([]byte{'}'})
}

// Outcomes of decisions about unique jobs.
const (
	UniqueAdmitted  = "admitted"  // the job has the key
	UniqueDuplicate = "duplicate" // another job has it
	UniqueRepeated  = "repeated"  // the job itself has it: its publish was repeated
	UniqueReplaced  = "replaced"  // of a job that waited: a later one has its key now
	UniqueFreed     = "freed"     // the time for which a key was taken is over, because a user says so
)

// Decision is what the leader decides about an entry of jobs.gated, in the record decided. Times
// are in microseconds since 1970.
type Decision struct {
	Outcome string   `json:"outcome"`
	Offset  int64    `json:"offset"`
	JID     string   `json:"jid,omitempty"`   // a JIDTag
	Key     UniqueID `json:"key,omitempty"`   // with Until; freed
	Until   int64    `json:"until,omitempty"` // admitted: how long the key is taken in any case
	Due     int64    `json:"due,omitempty"`   // when the job is due, or if it is a duplicate, the one at Holder
	First   int64    `json:"first,omitempty"` // admitted: since when it is put off
	Of      string   `json:"of,omitempty"`    // duplicate: the jid that stays
	// The entry that had the key: it is replaced by the admitted one, or put off by a duplicate.
	Holder    *int64 `json:"holder,omitempty"`
	HolderJID string `json:"holder_jid,omitempty"` // a JIDTag
}

// UniquePeriod is that a key is taken for a time, even if its job ends before that.
type UniquePeriod struct {
	Key   UniqueID `json:"key"`
	JID   string   `json:"jid"`
	Since int64    `json:"since"` // both in microseconds since 1970
	Until int64    `json:"until"`
}

// Admission is what an entry says of the decision about the one that it replaces.
type Admission struct {
	Due   time.Time
	First int64 // as in a Decision
}

// String returns the admission as a header has it.
func (a Admission) String() string { return fmt.Sprintf("%d %d", a.Due.UnixMicro(), a.First) }

// parseAdmission parses a header, nil if it has no admission.
func parseAdmission(header any) *Admission {
	text, _ := header.(string)
	due, first, _ := strings.Cut(text, " ")
	d, err := strconv.ParseInt(due, 10, 64)
	f, fault := strconv.ParseInt(first, 10, 64)
	if err != nil || fault != nil {
		return nil
	}
	return &Admission{time.UnixMicro(d).UTC(), f}
}

// RetriesProbe returns a message to the retries. A view that has read it has read every retry that
// was written before.
func RetriesProbe(epoch, number int64) Message {
	return probe("", Retries, map[string]any{HeaderFormat: int64(Format), HeaderOp: OpProbe, HeaderEpoch: epoch, HeaderSeq: number})
}
