package scheduler

// offsets is a set of offsets, a bit each. Those that stand together share a page of 4 KiB, so a
// million take little memory.
type offsets map[int64]*[512]uint64

func (o offsets) add(at int64) {
	page := o[at>>15]
	if page == nil {
		page = new([512]uint64)
		o[at>>15] = page
	}
	page[at>>6&511] |= 1 << (at & 63)
}

func (o offsets) has(at int64) bool {
	page := o[at>>15]
	return page != nil && page[at>>6&511]&(1<<(at&63)) != 0
}
