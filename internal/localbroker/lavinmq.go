package localbroker

import (
	"fmt"
	"os"
	"path/filepath"
)

// lavinmqINI has no listeners but those three, of which the last cannot be turned off. Statistics come as often as config has them come.
const lavinmqINI = `[main]
data_dir = %s
control_unix_path = %s
metrics_http_port = -1
stats_interval = 1000

[amqp]
bind = 127.0.0.1
port = %d

[mgmt]
bind = 127.0.0.1
port = %d

[clustering]
bind = 127.0.0.1
port = %d

[mqtt]
port = -1
`

// writeLavinMQ prepares the folder for a LavinMQ.
func writeLavinMQ(dir string, p ports) error {
	ini := fmt.Sprintf(lavinmqINI, filepath.Join(dir, "data"), filepath.Join(dir, "ctl.sock"), p.amqp, p.management, p.dist)
	if err := os.WriteFile(filepath.Join(dir, "lavinmq.ini"), []byte(ini), 0o600); err != nil {
		return fmt.Errorf("localbroker: configuring the node: %w", err)
	}
	return nil
}
