package wire

import "cmp"

// Through identifies a fire of an epoch.
type Through struct {
	Epoch   int64 `json:"epoch"`
	Through int64 `json:"through"`
}

// Compare orders fires by when they were sent.
func (t Through) Compare(other Through) int {
	return cmp.Or(cmp.Compare(t.Epoch, other.Epoch), cmp.Compare(t.Through, other.Through))
}
