package localbroker

import (
	"fmt"
	"os"
	"path/filepath"
)

// lavinmqINI has only these three listeners. The last one cannot be disabled. The statistics
// interval is the same as in config.
const lavinmqINI = `[main]
data_dir = %[1]s
control_unix_path = %[2]s
metrics_http_port = -1
stats_interval = 1000

[amqp]
bind = %[3]s
port = %[4]d

[mgmt]
bind = %[3]s
port = %[5]d

[clustering]
bind = %[3]s
port = %[6]d
%[7]s`

// lavinmqAlone is the configuration of a single node, which has no MQTT.
const lavinmqAlone = `
[mqtt]
port = -1
`

// writeLavinMQ prepares the directory for a LavinMQ.
func writeLavinMQ(dir string, p ports, s seat) error {
	ini := fmt.Sprintf(lavinmqINI, filepath.Join(dir, "data"), filepath.Join(dir, "ctl.sock"), s.host, p.amqp, p.management, p.dist, s.config)
	if err := os.WriteFile(filepath.Join(dir, "lavinmq.ini"), []byte(ini), 0o600); err != nil {
		return fmt.Errorf("localbroker: configuring the node: %w", err)
	}
	return nil
}
