package answer

// Envelope stands around a page of a list, as the brokers have it, and more.
type Envelope struct {
	Total     int64   `json:"total_count"`
	Filtered  *int64  `json:"filtered_count,omitempty"` // left out where it is not known
	AtLeast   *int64  `json:"filtered_count_at_least,omitempty"`
	Searched  *int64  `json:"searched,omitempty"`   // entries that were looked at
	Unread    int64   `json:"unsearched,omitempty"` // of them, those over 64 KiB
	ItemCount int     `json:"item_count"`
	Page      int64   `json:"page"`
	PageSize  int     `json:"page_size"`
	PageCount *int64  `json:"page_count,omitempty"`
	AsOf      *int64  `json:"as_of,omitempty"`
	Next      *string `json:"next"` // null: there is no more

	Failure *Failure `json:"error_group,omitempty"` // of the fingerprint in the filter, if it is known
}

// Page is a page of a list.
type Page[T any] struct {
	Envelope
	Items []T `json:"items"`
}

// History is a part of a list of what happened, the newest first.
type History[T any] struct {
	Items    []T     `json:"items"`
	Searched int     `json:"searched"`
	Next     *string `json:"next"` // null: there is no more
	Older    bool    `json:"older_than_kept"`
}
