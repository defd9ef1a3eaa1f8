package metrics

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// Deploy is a mark in all charts.
type Deploy struct {
	Label string  `json:"label"`
	At    float64 `json:"at"`
	Actor string  `json:"actor,omitempty"`
}

// maxDeploys is how many deploys are read at once.
const maxDeploys = 1000

func keyDeploy(at float64, label string) []byte {
	return append(keyStart(tableDeploy, int64(at*1e6)), label...)
}

// keepDeploy stores a deploy. A repeated one overwrites itself.
func keepDeploy(tx *view.Tx, r *wire.Rollup) error {
	raw, err := json.Marshal(Deploy{r.Label, r.At, r.Actor})
	if err != nil {
		return fmt.Errorf("metrics: keep deploy: %w", err)
	}
	return tx.Set(keyDeploy(r.At, r.Label), raw)
}

// Deploys returns the deploys from one time up to another, the newest first.
func (d *Reader) Deploys(from, to time.Time) ([]Deploy, error) {
	all := []Deploy{}
	err := table.Scan(d.store, keyStart(tableDeploy, from.UnixMicro()), keyStart(tableDeploy, to.UnixMicro()), true, func(_, value []byte) (bool, error) {
		var d Deploy
		err := json.Unmarshal(value, &d)
		all = append(all, d)
		return len(all) < maxDeploys, err
	})
	if err != nil {
		return nil, fmt.Errorf("metrics: read deploys: %w", err)
	}
	return all, nil
}
