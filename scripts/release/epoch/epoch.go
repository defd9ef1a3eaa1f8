// Package epoch has the time of all files in a release.
package epoch

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

// Time returns the time that SOURCE_DATE_EPOCH says, in seconds since 1970.
func Time() (time.Time, error) {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
