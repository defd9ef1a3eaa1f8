package live

import (
	"context"
	"encoding/json"
	"errors"
)

const (
	eventUpdate  = "update"  // what has changed
	eventDropped = "dropped" // the viewer was cut off, and missed what came meanwhile
	eventEnd     = "end"     // nothing more comes: connect again
)

// sink is a viewer's connection.
type sink interface {
	send(ctx context.Context, id, event string, data []byte) error
	ping(ctx context.Context) error
	end(ctx context.Context, reason string) // sends the viewer the reason, if it still can
}

// errUnread is returned by a sink whose viewer does not read.
var errUnread = errors.New("httpapi: a viewer does not read")

func reasonJSON(reason string) []byte {
	data, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil { // a text
		panic(err)
	}
	return data
}
