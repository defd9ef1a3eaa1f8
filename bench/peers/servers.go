package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/bench/peers/work"
	"github.com/millrace-jobs/millrace/internal/localbroker"
)

const startWithin = 2 * time.Minute

// server is what a peer keeps its jobs in. It runs only while that peer is measured.
type server interface {
	// fresh sets the address of an empty place for a row.
	fresh(ctx context.Context, w *work.Work) error
	about() string
	stop() error
}

// startServer starts a program, waits until its port answers, and returns what kills it.
func startServer(ctx context.Context, cmd *exec.Cmd, port int) (stop func() error, err error) {
	cmd.SysProcAttr.Pdeathsig, cmd.SysProcAttr.Setpgid = syscall.SIGKILL, true
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGINT) // a quick and orderly end, of Redis and PostgreSQL
		_ = cmd.Wait()
		return nil
	}
	err = until(ctx, startWithin, cmd.Path+" answers", func() (bool, error) {
		conn, err := net.Dial("tcp", address(port))
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil {
		return nil, errors.Join(err, stop(), errors.New(output.String()))
	}
	return stop, nil
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// redis is a private Redis, which writes each change to its log once a second.
type redis struct {
	url, version string
	end          func() error
}

func startRedis(ctx context.Context, dir string) (server, error) {
	port, err := localbroker.FreePort(27100)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.Command("redis-server", "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	end, err := startServer(ctx, cmd, port)
	if err != nil {
		return nil, err
	}
	version, err := exec.Command("redis-server", "--version").Output()
	return &redis{"redis://" + address(port), "Redis " + word(string(version), "v="), end}, err
}

// fresh does nothing: queues of rows have names of their own.
func (r *redis) fresh(_ context.Context, w *work.Work) error {
	w.Redis = r.url
	return nil
}

func (r *redis) about() string { return r.version + ", appendfsync everysec" }
func (r *redis) stop() error   { return r.end() }

// postgres is a private PostgreSQL with its own defaults.
type postgres struct {
	url, version string
	end          func() error
}

// postgresOwner is the user that runs PostgreSQL if this process is root, as which it does not run.
const postgresOwner = "postgres"

func startPostgres(ctx context.Context, dir string) (server, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	port, err := localbroker.FreePort(27200)
	if err != nil {
		return nil, err
	}
	attributes, err := ownedByPostgres(dir)
	if err != nil {
		return nil, err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", dir, "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8")
	initdb.SysProcAttr, initdb.Dir = attributes, "/"
	if output, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, output)
	}
	cmd := exec.Command(filepath.Join(bin, "postgres"), "-D", dir, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200")
	cmd.SysProcAttr, cmd.Dir = attributes, "/"
	end, err := startServer(ctx, cmd, port)
	if err != nil {
		return nil, err
	}
	version, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	return &postgres{"postgres://postgres@" + address(port) + "/postgres", "PostgreSQL " + word(string(version), "(PostgreSQL) "), end}, err
}

// postgresPrograms returns the directory of Debian's newest PostgreSQL.
func postgresPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("PostgreSQL is not installed: run apt-get install postgresql")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// ownedByPostgres creates the directory, for this user or, if that is root, for PostgreSQL's own.
func ownedByPostgres(dir string) (*syscall.SysProcAttr, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	owner, err := user.Lookup(postgresOwner)
	if err != nil {
		return nil, err
	}
	uid, _ := strconv.Atoi(owner.Uid)
	gid, _ := strconv.Atoi(owner.Gid)
	attributes := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return attributes, errors.Join(os.Chown(dir, uid, gid), os.Chmod(filepath.Dir(dir), 0o711))
}

// fresh does nothing: the program has a schema for each row.
func (p *postgres) fresh(_ context.Context, w *work.Work) error {
	w.Postgres = p.url
	return nil
}

func (p *postgres) about() string { return p.version + ", its own defaults" }
func (p *postgres) stop() error   { return p.end() }

// broker is a private RabbitMQ or LavinMQ.
type broker struct {
	*localbroker.Broker
	version string
}

func startBroker(ctx context.Context, dir, lavinMQ string) (*broker, error) {
	b, err := localbroker.Start(ctx, localbroker.Config{Dir: dir, LavinMQ: lavinMQ})
	if err != nil {
		return nil, err
	}
	version, err := product(b.AMQPURL())
	return &broker{b, version}, err
}

// fresh creates a virtual host for the row.
func (b *broker) fresh(ctx context.Context, w *work.Work) error {
	w.AMQP = b.AMQPURL() + w.Row
	err := b.manage(ctx, "/api/vhosts/"+w.Row, `{}`)
	return errors.Join(err, b.manage(ctx, "/api/permissions/"+w.Row+"/guest", `{"configure":".*","write":".*","read":".*"}`))
}

func (b *broker) manage(ctx context.Context, path, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, strings.TrimSuffix(b.ManagementURL(), "/")+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("management API: %s: %s", path, resp.Status)
	}
	return nil
}

func (b *broker) about() string { return b.version }
func (b *broker) stop() error   { return b.Stop(context.Background()) }

// word returns the word that follows a mark in a text.
func word(text, mark string) string {
	_, after, _ := strings.Cut(text, mark)
	first, _, _ := strings.Cut(after, " ")
	return strings.TrimSpace(first)
}

// until polls until holds returns true.
func until(ctx context.Context, within time.Duration, what string, holds func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := holds(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}
