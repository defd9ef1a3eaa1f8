package wire

// Format is the version of the journal that this build writes, and the newest that it reads.
const Format = 4

// Types of the JSON records in the journal.
const (
	TypeOpened    = "opened"    // an epoch begins; its number is the offset of this record
	TypeWitness   = "witness"   // this epoch leads, or the broker's nodes or links changed
	TypeConfirmed = "confirmed" // fires and burials up to Through and in Above are confirmed
	TypeReturned  = "returned"  // a fire or burial of this epoch was refused, or not answered
	TypeDelivered = "delivered" // settled: a fire or burial of an earlier epoch arrived
	TypeUnburied  = "unburied"  // settled: a burial did not arrive, or a fire must be repeated
	TypeRefused   = "refused"   // the broker refuses the entry: it is parked
	TypeDuplicate = "duplicate" // the same publish as another pending entry
	TypeExpired   = "expired"   // past its expires_at, and not to be buried
	TypeDeleted   = "deleted"   // by a user; has the entry's bytes
	TypeChanged   = "changed"   // by a user; has the entry's old bytes
	TypeUndone    = "undone"    // a user undid a delete, kill or change: a new entry stands
	TypeKilled    = "killed"    // by a user: the burial is confirmed; has the entry's bytes
	TypeTrimmed   = "trimmed"   // dead jobs were dropped: too many, or too old
	TypeLowWater  = "low-water" // everything below these offsets is settled
	TypeRecreated = "recreated" // an entry stream was created again, or ends below low water
	TypeMisrouted = "astray"    // the route of fires was broken: some may not have arrived
	TypeReleased  = "released"  // held entries may fire, except those up to Held
	TypeState     = "state"     // pauses, operations, idempotency keys, periodic jobs, limits, governed queues, slots, keys
	TypeOperation = "operation" // progress of a bulk operation
	TypeRejected  = "rejected"  // a queue had a message that is not a job
	TypeDismissed = "dismissed" // a rejected record was removed from the list
	TypeNoted     = "noted"     // a user acts on a queue or on workers: see Noted
	TypeBarrier   = "barrier"   // in entry streams: an epoch begins here
	TypeDefined   = "defined"   // layers of definitions were set or removed
	TypeGoverned  = "governed"  // governed queues have other states
	TypeTicked    = "ticked"    // outcomes of ticks of periodic jobs
	TypeDecided   = "decided"   // which unique jobs have their keys, and which are duplicates
	TypeFreed     = "freed"     // slots were freed whose jobs no worker reports
)
