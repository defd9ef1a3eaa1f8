package localbroker

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// nodeName is constant, so that the data can be used again in any directory: RabbitMQ's data
// belongs to a node name. Two nodes with the same name do not meet, because each has its own epmd.
const nodeName = "millrace@localhost"

// nodeConfig is the node's rabbitmq.conf. The statistics interval is one second instead of five, so
// that queue lengths are current. The disk limit is low, because a full disk on a developer's
// machine is no reason to block publishers.
const nodeConfig = `listeners.tcp.1 = %[1]s:%[2]d
management.tcp.ip = %[1]s
management.tcp.port = %[3]d
stream.listeners.tcp.1 = %[1]s:%[4]d
stream.advertised_host = %[1]s
stream.advertised_port = %[4]d
disk_free_limit.absolute = 10MB
collect_statistics_interval = 1000
log.console = false
log.file = rabbit.log
log.file.level = notice
`

// inetrc gives Erlang the addresses of localhost and of the machine, so that it does not depend on
// the machine's own (none at all in a bare chroot, ::1 on others). RabbitMQ 4 looks up the
// machine's name for every answer about its nodes. If only a slow or distant name server knows the
// name, that takes seconds.
const inetrc = `{host, {127,0,0,1}, ["localhost", %q]}.
{lookup, [file, native]}.
`

// writeFiles prepares the directory. It keeps an existing cookie, and writes all other files again.
func (b *Broker) writeFiles() error {
	for _, d := range []string{b.dir, filepath.Join(b.dir, "data"), filepath.Join(b.dir, "log")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return fmt.Errorf("localbroker: making the node's folder: %w", err)
		}
	}
	if !b.HasErlang() {
		return writeLavinMQ(b.dir, b.ports, b.seat)
	}
	return writeRabbitMQ(b.dir, b.ports, b.seat)
}

func writeRabbitMQ(dir string, p ports, s seat) error {
	machine, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("localbroker: asking for the machine's name: %w", err)
	}
	config, environment, err := s.extension.install(dir)
	if err != nil {
		return err
	}
	files := map[string]string{
		"rabbitmq.conf":   fmt.Sprintf(nodeConfig, s.host, p.amqp, p.management, p.stream) + s.config + config,
		"enabled_plugins": enabledPlugins(s.extension.Plugins),
		"rabbitmq-env":    inHome + environment,
		"inetrc":          fmt.Sprintf(inetrc, machine),
		"preload.erl":     preload,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("localbroker: configuring the node: %w", err)
		}
	}
	return writeCookie(filepath.Join(dir, ".erlang.cookie"), s.cookie)
}

// writeCookie writes the secret for rabbitmqctl and other nodes, unless there is one.
func writeCookie(path, secret string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("localbroker: making the node's cookie: %w", err)
	}
	_, err = f.WriteString(secret)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("localbroker: writing the node's cookie: %w", err)
	}
	return nil
}

// newCookie returns a random secret.
func newCookie() string {
	secret := make([]byte, 20)
	_, _ = rand.Read(secret) // never fails
	return hex.EncodeToString(secret)
}

func (b *Broker) env() []string {
	all := env(b.dir, b.ports, b.seat.name)
	if b.seat.packaged {
		all = append(all, "RABBITMQ_CONFIG_FILES="+filepath.Join(b.dir, "none"))
	}
	return all
}

// env returns the whole environment of a node, epmd and rabbitmqctl. Only PATH is inherited, so
// that no RABBITMQ_ variable and no file in /etc/rabbitmq for another node affects this one.
func env(dir string, p ports, name string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"HOME=" + dir, // for the Erlang cookie
		fmt.Sprintf("ERL_EPMD_PORT=%d", p.epmd),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_INETRC=" + filepath.Join(dir, "inetrc"),
		// Otherwise every Erlang VM that finds no epmd starts one, which stays forever.
		"ERL_FLAGS=-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_NODENAME=" + name,
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "rabbitmq-env"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + filepath.Join(dir, "none.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", p.dist),
		// rabbitmqctl may use any port. Its default range of ten is too small for many nodes.
		"RABBITMQ_CTL_DIST_PORT_MIN=0",
		"RABBITMQ_CTL_DIST_PORT_MAX=0",
		// Two cores are enough for a private broker, and many share them: no thread stays awake to
		// wait for work. The node ignores break signals, because this package handles them.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +B i +sbwt none +sbwtdcpu none +sbwtdio none",
		"RABBITMQ_BOOT_MODULE=" + bootModule,
		// The script then becomes the Erlang VM, instead of supervising it from a shell. So the
		// started process is the node, with its signals and its exit.
		"RUNNING_UNDER_SYSTEMD=true",
		"ERL_CRASH_DUMP=" + filepath.Join(dir, "log", "erl_crash.dump"),
	}
}

// logTail returns the last lines that the node wrote, for an error message.
func logTail(dir string) string {
	const lines = 15
	for _, name := range []string{"startup.log", "rabbit.log"} {
		text, err := os.ReadFile(filepath.Join(dir, "log", name))
		if err != nil || len(text) == 0 {
			continue
		}
		all := strings.Split(strings.TrimSpace(string(text)), "\n")
		return strings.Join(all[max(0, len(all)-lines):], "\n")
	}
	return "(it wrote nothing)"
}
