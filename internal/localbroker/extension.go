package localbroker

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Extension adds plugins and settings to a RabbitMQ.
type Extension struct {
	// Plugins are enabled besides the management API and streams.
	Plugins []string

	// Files are copied into a directory of the node, in which RabbitMQ also looks for plugins.
	Files []string

	// Config is more lines for rabbitmq.conf. FilesDir in it stands for the directory of Files.
	Config string
}

// FilesDir stands for the directory of Extension.Files.
const FilesDir = "{files}"

// enabledPlugins returns the file of enabled plugins: the management API, for queue lengths and
// policies, streams, for their native protocol, and more.
func enabledPlugins(more []string) string {
	return fmt.Sprintf("[%s].\n", strings.Join(append([]string{"rabbitmq_management", "rabbitmq_stream"}, more...), ","))
}

// install copies the files. It returns the lines for rabbitmq.conf, and those that let RabbitMQ's
// scripts find the plugins.
func (e Extension) install(dir string) (config, environment string, err error) {
	if len(e.Files) == 0 {
		return e.Config, "", nil
	}
	files := filepath.Join(dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return "", "", fmt.Errorf("localbroker: installing plugins: %w", err)
	}
	for _, file := range e.Files {
		if err := copyFile(file, filepath.Join(files, filepath.Base(file))); err != nil {
			return "", "", fmt.Errorf("localbroker: installing plugins: %w", err)
		}
	}
	environment = fmt.Sprintf("export RABBITMQ_PLUGINS_DIR=\"$RABBITMQ_HOME/plugins:%s\"\n", files)
	return strings.ReplaceAll(e.Config, FilesDir, files), environment, nil
}

// copyFile copies a file once. Only this user may use the copy.
func copyFile(from, to string) error {
	if isFile(to) {
		return nil // a program may be running
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
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
