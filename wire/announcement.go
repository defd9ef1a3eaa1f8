package wire

import "slices"

// enqueues reports whether an entry that announces a record is a job that the leader enqueued, and
// replaces no other entry.
func enqueues(what string) bool { return what == OpEnqueued || what == TypeTicked }

// Announcement is what the headers of a replacement say about the request of a user. The leader
// journals it after it has read the replacement back.
type Announcement struct {
	What      string `json:"what"`              // the type of the journal record to come
	Stream    string `json:"stream"`            // of both entries
	Offset    int64  `json:"offset"`            // of the replacement
	Replaces  int64  `json:"replaces"`          // offset of the entry that it replaces
	JIDTag    string `json:"jid"`               // of both entries
	Command   string `json:"command,omitempty"` // id of the command
	Actor     string `json:"actor,omitempty"`
	Operation string `json:"operation,omitempty"` // id of the bulk operation
	Undoes    int64  `json:"undoes,omitempty"`    // undone: the journal record that is undone
	Dead      *int64 `json:"dead,omitempty"`      // undone, of a kill: the dead job to remove
	Key       string `json:"key,omitempty"`       // enqueued, ticked: the key; nothing is replaced
	Sum       string `json:"sum,omitempty"`       // enqueued: checksum of the request
	JID       string `json:"full_jid,omitempty"`  // enqueued, ticked: the jid itself, not its tag
}

// Headers returns the announcement as headers of the replacement.
func (a Announcement) Headers(epoch int64) map[string]any {
	h := map[string]any{HeaderEpoch: epoch, HeaderAnnounces: a.What}
	switch a.What {
	case OpEnqueued:
		h[HeaderKey], h[HeaderSum] = a.Key, a.Sum
	case TypeTicked:
		h[HeaderKey] = a.Key
	default:
		h[HeaderReplaces] = a.Replaces
	}
	for name, text := range map[string]string{HeaderCommand: a.Command, HeaderActor: a.Actor, HeaderOperation: a.Operation} {
		if text != "" {
			h[name] = ASCII(text)
		}
	}
	if a.Undoes > 0 {
		h[HeaderUndoes] = a.Undoes
	}
	if a.Dead != nil {
		h[HeaderDead] = *a.Dead
	}
	return h
}

// AnnouncementOf parses the headers of a replacement. ok is false if they announce nothing. The jid
// is left out.
func AnnouncementOf(r *Record) (a Announcement, ok bool) {
	a.What, _ = r.Headers[HeaderAnnounces].(string)
	if !slices.Contains([]string{TypeChanged, TypeUndone, OpEnqueued, TypeTicked}, a.What) {
		return a, false
	}
	a.Stream, a.Offset = r.Stream, r.Offset
	a.Replaces, a.Undoes = HeaderInt(r.Headers, HeaderReplaces), HeaderInt(r.Headers, HeaderUndoes)
	a.Key, _ = r.Headers[HeaderKey].(string)
	a.Sum, _ = r.Headers[HeaderSum].(string)
	a.Command, _ = r.Headers[HeaderCommand].(string)
	a.Actor, _ = r.Headers[HeaderActor].(string)
	a.Operation, _ = r.Headers[HeaderOperation].(string)
	if dead, given := r.Headers[HeaderDead].(int64); given {
		a.Dead = &dead
	}
	return a, true
}

// Record returns the journal record that was announced. The caller fills in the other members.
func (a Announcement) Record() JournalRecord {
	by := a.Offset
	return JournalRecord{Type: a.What, Stream: a.Stream, Offset: a.Replaces, JID: a.JIDTag, By: &by, Undoes: a.Undoes, Dead: a.Dead,
		Command: a.Command, Actor: a.Actor, InOperation: a.Operation}
}
