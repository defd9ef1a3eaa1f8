package view

func (tx *Tx) setPosition(stream string, p position) error {
	delete(tx.positions, stream)
	return tx.Set(keyPosition(stream), p.encode())
}

// Position returns the offset of the last folded record of a stream, or -1 if there is none.
func (tx *Tx) Position(stream string) (int64, error) {
	if at, known := tx.positions[stream]; known { // a fold asks for each record
		return at, nil
	}
	p, err := readPosition(tx, stream)
	if err != nil {
		return none, err
	}
	if tx.positions == nil {
		tx.positions = map[string]int64{}
	}
	tx.positions[stream] = p.offset
	return p.offset, nil
}

// Rewind makes the view read a stream again, from the first record that it has.
func (tx *Tx) Rewind(stream string) error {
	tx.rewound = append(tx.rewound, stream)
	return tx.forgetPosition(stream)
}

// HoldPosition leaves a stream's position as it is. The fold has the records of the batch in
// memory, and writes them with a later one. After a crash they are read again, so the fold must
// recognise those that it has.
func (tx *Tx) HoldPosition(stream string) {
	if tx.held == nil {
		tx.held = map[string]bool{}
	}
	tx.held[stream] = true
}

// Position returns the offset of the last folded record of a stream, or -1 if there is none.
func (s *Store) Position(stream string) (int64, error) {
	p, err := readPosition(s, stream)
	return p.offset, err
}

// Confirmed stores that the broker has confirmed a record to its publisher. The broker then has all
// earlier records too, so a stream without this record has lost records that it must not lose.
// Records behind the newest confirmed one may be gone after a failover, which breaks no promise.
func (tx *Tx) Confirmed(stream string, at Mark) error {
	known, err := readMark(tx, keyConfirmed(stream))
	if err != nil || at.offset <= known.offset || at.sum == unreadable {
		return err
	}
	return tx.Set(keyConfirmed(stream), at.encode())
}

// Confirmed returns the offset of the newest record of a stream that is known to be confirmed, or
// -1 if there is none.
func (s *Store) Confirmed(stream string) (int64, error) {
	at, err := readMark(s, keyConfirmed(stream))
	return at.offset, err
}
