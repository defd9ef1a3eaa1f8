package answer

// ErrorGroups are the retries and dead jobs, grouped by their errors.
type ErrorGroups struct {
	Items    []ErrorGroup `json:"items"`
	Searched int64        `json:"searched"`
	Unread   int64        `json:"unsearched"`      // entries whose record is in the stream only
	Complete bool         `json:"complete"`        // false: one call looks at no more
	AsOf     *int64       `json:"as_of,omitempty"` // of one set: how far its stream was read
	Over     float64      `json:"recent_seconds"`  // the time that recent is of
}

// Failure is what errors with one fingerprint have in common.
type Failure struct {
	Fingerprint string `json:"fingerprint"` // a value of the filter error
	Class       string `json:"class"`
	ErrorClass  string `json:"error_class"`
	Message     string `json:"message"` // without what changes from one job to the next
}

// ErrorGroup is the errors with one fingerprint.
type ErrorGroup struct {
	Failure
	Example string  `json:"example,omitempty"` // the first line of one job's message
	Count   int64   `json:"count"`
	Retries int64   `json:"retries"`
	Dead    int64   `json:"dead"`
	First   float64 `json:"first"` // when its entries died, or are due again
	Last    float64 `json:"last"`
	JID     string  `json:"jid"` // of one of them

	Recent    int64       `json:"recent"` // attempts that failed in the last minutes
	Hosts     []HostCount `json:"hosts"`  // where they ran, most first
	HostCount int         `json:"host_count"`
}

// HostCount is how many attempts failed on a host.
type HostCount struct {
	Host  string `json:"host"`
	Count int64  `json:"count"`
}
