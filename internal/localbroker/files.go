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

// nodeName does not depend on anything, so that a folder's data can be used again wherever it lies:
// RabbitMQ's data belongs to a node name. Two nodes of one name do not meet, as each has its own epmd.
const nodeName = "millrace@localhost"

// plugins: the management API for queue lengths and policies, streams for their native protocol.
const plugins = "[rabbitmq_management,rabbitmq_stream].\n"

// config is the node's rabbitmq.conf. The statistics interval is a second instead of five, so that
// who watches queue lengths does not wait. The disk limit is low because a full disk of a developer's
// machine is no reason to block publishers.
const config = `listeners.tcp.1 = %[1]s:%[2]d
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

// inetrc tells Erlang where localhost and the machine are, so that the machine's own idea of them (none
// at all in a bare chroot, ::1 on others) does not matter. RabbitMQ 4 looks the machine's name up for
// every answer about its nodes: where only a slow or distant name server knows it, that takes seconds.
const inetrc = `{host, {127,0,0,1}, ["localhost", %q]}.
{lookup, [file, native]}.
`

// writeFiles prepares the folder. The cookie is kept if there is one, all else is written anew.
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
	files := map[string]string{
		"rabbitmq.conf":   fmt.Sprintf(config, s.host, p.amqp, p.management, p.stream) + s.config,
		"enabled_plugins": plugins,
		"inetrc":          fmt.Sprintf(inetrc, machine),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("localbroker: configuring the node: %w", err)
		}
	}
	return writeCookie(filepath.Join(dir, ".erlang.cookie"), s.cookie)
}

// writeCookie keeps the secret that lets rabbitmqctl and other nodes in, unless there is one.
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

// newCookie returns a secret that nobody can guess.
func newCookie() string {
	secret := make([]byte, 20)
	_, _ = rand.Read(secret) // never fails
	return hex.EncodeToString(secret)
}

func (b *Broker) env() []string { return env(b.dir, b.ports, b.seat.name) }

// env is the whole environment of a node, epmd and rabbitmqctl. Nothing is inherited but PATH, so
// that no RABBITMQ_ variable and no file in /etc/rabbitmq that is meant for another node reaches ours.
func env(dir string, p ports, name string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"),
		"LANG=C.UTF-8",
		"HOME=" + dir, // the Erlang cookie
		fmt.Sprintf("ERL_EPMD_PORT=%d", p.epmd),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_INETRC=" + filepath.Join(dir, "inetrc"),
		// Every Erlang VM otherwise starts an epmd that stays for ever if it finds none.
		"ERL_FLAGS=-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
		"RABBITMQ_NODENAME=" + name,
		"RABBITMQ_CONF_ENV_FILE=" + filepath.Join(dir, "none"),
		"RABBITMQ_CONFIG_FILE=" + filepath.Join(dir, "rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + filepath.Join(dir, "none.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + filepath.Join(dir, "enabled_plugins"),
		"RABBITMQ_MNESIA_BASE=" + filepath.Join(dir, "data"),
		"RABBITMQ_LOG_BASE=" + filepath.Join(dir, "log"),
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", p.dist),
		// Ports for rabbitmqctl itself: any. Its ten default ones run out when nodes are many.
		"RABBITMQ_CTL_DIST_PORT_MIN=0",
		"RABBITMQ_CTL_DIST_PORT_MAX=0",
		// Two cores are enough for a broker of our own. Break signals are ours to handle.
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=+S 2:2 +B i",
		// Makes the script become the Erlang VM instead of watching over it from a shell, so that the
		// process we start is the node: its signals, its exit.
		"RUNNING_UNDER_SYSTEMD=true",
		"ERL_CRASH_DUMP=" + filepath.Join(dir, "log", "erl_crash.dump"),
	}
}

// logTail is the end of what the node has written, for an error message.
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
