package localbroker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Extension adds plugins and settings to a RabbitMQ.
type Extension struct {
	// Plugins are enabled besides the management API and streams.
	Plugins []string

	// PluginDir holds .ez files of plugins that do not come with RabbitMQ. If Config.RabbitMQ runs
	// in a root directory of its own, PluginDir must be below Config.Dir.
	PluginDir string

	// Config is more lines for rabbitmq.conf.
	Config string
}

// enabledPlugins returns the file of enabled plugins: the management API, for queue lengths and
// policies, streams, for their native protocol, and more.
func enabledPlugins(more []string) string {
	return fmt.Sprintf("[%s].\n", strings.Join(append([]string{"rabbitmq_management", "rabbitmq_stream"}, more...), ","))
}

// pluginPath returns the lines that let RabbitMQ's scripts find plugins in a directory.
func pluginPath(dir string) string {
	if dir == "" {
		return ""
	}
	return fmt.Sprintf("export RABBITMQ_PLUGINS_DIR=\"$RABBITMQ_HOME/plugins:%s\"\n", dir)
}

// SetPlugins enables the plugins besides the management API and streams, and disables all others,
// while the node runs (`rabbitmq-plugins set`).
func (b *Broker) SetPlugins(ctx context.Context, plugins ...string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seat.extension.Plugins = plugins
	file := filepath.Join(b.dir, "enabled_plugins")
	if err := os.WriteFile(file, []byte(enabledPlugins(plugins)), 0o600); err != nil {
		return fmt.Errorf("localbroker: enabling plugins: %w", err)
	}
	_, err := b.eval(ctx, fmt.Sprintf("{ok, _, _} = rabbit_plugins:ensure(%q).", file))
	return err
}
