// Package httpapi is the sidecar's HTTP side: lists of entries, commands on them, health and metrics. It alone knows echo.
//
// It answers from the view and changes nothing by itself: an action becomes a command to whoever leads, and the view shows the
// result when the record comes round. Handlers are thin, and nothing on a request path scans a stream: a record that the view does
// not keep (over 64 KiB) is read from the stream by its offset.
//
// Promises. An item is the stored record byte for byte with one member more; nothing here parses a record and writes it again. Every
// error is {"error","reason","request_id"}, and the log has the same request id. What a caller gets wrong is refused, with a reason,
// never guessed or dropped: an unknown query parameter is an error, because a filter that is silently ignored shows, and one day
// deletes, what nobody meant.
//
// When things fail. Without a leader commands answer 503 no_leader and were not carried out; 504 outcome_unknown says that they may
// have been, and that repeating them is safe. Lists go on answering from what was read; /readyz says that it may be old. Where a
// large record cannot be read, a list shows its entry without it and says so.
//
// Who may. Every route says what it needs (routes.go); admit.go asks who somebody is and compares. Names and passwords are the
// broker's, asked for at its management API and believed for 30 seconds; no password is kept but in the sealed cookie of a browser's
// session, so that every sidecar with the same key can ask again. Others than this machine's users can connect only where somebody is
// asked, over TLS or behind a proxy. Requests that a browser sends for another site, or under a host name that is not expected (DNS
// rebinding), are refused, loopback or not.
package httpapi
