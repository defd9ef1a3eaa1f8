package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// failover is how soon a client is connected to another host when its own is gone.
const failover = 5 * time.Second

// hosts gives producer and worker three hosts. One is dead, and the other two go away in turn.
func hosts(t *trial) {
	t.serve()
	t.declare("default")
	broker, err := url.Parse(t.room.amqpURL)
	require.NoError(t, err)
	first, second := t.host(broker.Host, nil), t.host(broker.Host, nil)
	dead := t.host(broker.Host, nil)
	dead.down()
	second.down()
	direct := t.room.amqpURL
	t.room.amqpURL = strings.Replace(direct, broker.Host, strings.Join([]string{dead.addr, first.addr, second.addr}, ","), 1)
	const concurrency, n = 4, 4000
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: concurrency}).ready("default")
	enqueued := t.outage("job-", n)
	t.room.amqpURL = direct
	for _, next := range []struct{ from, to *host }{{first, second}, {second, first}} {
		ran := w.count("ran", "")
		t.eventually(func() bool { return w.count("ran", "") > ran+20 }, "jobs run")
		next.to.up(t)
		next.from.down()
		t.within(failover, func() bool { return next.to.connections() == 2 }, "worker and producer are connected to another host")
	}
	texts := enqueued()
	t.all(w, func(i int) string { return texts[i] }, n)
	t.eventually(func() bool { return t.empty("default") }, "every job is acknowledged")
	w.stop(t, 20*time.Second)
	require.Empty(t, t.records(wire.DeadJobs))
	require.Empty(t, t.records(wire.Retries))
	// What ran and was not acknowledged runs again; what was enqueued and not confirmed is enqueued again.
	require.LessOrEqual(t, w.count("ran", "")-n, 2*(concurrency+1), "jobs ran twice that were not in flight")
}

// host is a broker's address that can go away.
type host struct {
	addr, broker string
	tls          *tls.Config // nil: none

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool // of clients
}

// host makes another address of the broker, with TLS if it is given a configuration.
func (t *trial) host(broker string, config *tls.Config) *host {
	h := &host{addr: "127.0.0.1:0", broker: broker, tls: config, conns: map[net.Conn]bool{}}
	h.up(t)
	t.cleanup(h.down)
	return h
}

func (h *host) up(t *trial) {
	l, err := net.Listen("tcp", h.addr)
	require.NoError(t, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.addr = l.Addr().String()
	if h.tls != nil {
		l = tls.NewListener(l, h.tls)
	}
	h.listener = l
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go h.forward(client)
		}
	}()
}

// down closes all connections and refuses new ones.
func (h *host) down() {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.listener.Close()
	for c := range h.conns {
		_ = c.Close()
	}
}

func (h *host) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.conns)
}

func (h *host) forward(client net.Conn) {
	defer client.Close()
	broker, err := net.Dial("tcp", h.broker)
	if err != nil {
		return
	}
	defer broker.Close()
	h.mu.Lock()
	h.conns[client] = true
	h.mu.Unlock()
	go func() {
		defer client.Close()
		_, _ = io.Copy(client, broker)
	}()
	_, _ = io.Copy(broker, client)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, client)
}

// crash has the broker answer 541 INTERNAL_ERROR in the middle of publishes, for its channels crash. RabbitMQ 3.10 does so to a first
// publish to a stream whose coordinator's leader dies.
func crash(t *trial) {
	t.serve()
	t.declare("default")
	const n = 4000
	text := func(i int) string { return fmt.Sprint("job-", i) }
	var commands []map[string]any
	for i := range n {
		c := enqueue("Append", text(i))
		if i%2 == 1 {
			c["op"], c["in"] = "enqueue_in", 0.1
		}
		c["timeout"] = 150
		commands = append(commands, c)
	}
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 4}).ready("default")
	crashed := make(chan error, 1)
	go func() { crashed <- t.crashChannels() }()
	results := t.startProducer(t.client, commands...).results(t)
	require.NoError(t, <-crashed)
	for _, r := range results {
		r.jid(t)
	}
	t.all(w, text, n)
	t.eventually(func() bool { return t.empty("default") }, "every job is acknowledged")
	w.stop(t, 20*time.Second)
	require.Empty(t, t.records(wire.DeadJobs))
	require.Empty(t, t.records(wire.Retries))
}

// crashChannels crashes the channels of this trial's producers and workers, four times while there is a producer.
func (t *trial) crashChannels() error {
	text, err := t.broker.Eval(t.ctx, fmt.Sprintf(`
		Crash = fun() -> [begin exit(Ch, kill), Name end || Ch <- rabbit_channel:list_local(),
			[{connection, C}, {vhost, <<%q>>}] <- [catch rabbit_channel:info(Ch, [connection, vhost])],
			[{client_properties, P}] <- [catch rabbit_reader:info(C, [client_properties])],
			{_, _, Name} <- [lists:keyfind(<<"connection_name">>, 1, P)], re:run(Name, "^millrace (producer|worker) ") =/= nomatch] end,
		Loop = fun Loop(0, _) -> crashed; Loop(_, 0) -> no_producer; Loop(N, Tries) ->
			timer:sleep(100),
			case [Name || Name <- Crash(), string:prefix(Name, "millrace producer ") =/= nomatch] of
				[] -> Loop(N, Tries - 1);
				_ -> Loop(N - 1, Tries - 1)
			end end,
		Loop(4, 400).`, t.room.vhost))
	if err == nil && strings.TrimSpace(text) != "crashed" {
		err = fmt.Errorf("the channels did not crash: %s", text)
	}
	return err
}

// secure has producer and worker on a host with TLS, whose certificate is for its name and for none of its addresses.
func secure(t *trial) {
	t.serve()
	t.declare("default")
	broker, err := url.Parse(t.room.amqpURL)
	require.NoError(t, err)
	h := t.host(broker.Host, t.certificate("localhost"))
	_, port, err := net.SplitHostPort(h.addr)
	require.NoError(t, err)
	broker.Scheme, broker.Host = "amqps", "localhost:"+port
	t.room.amqpURL = broker.String()
	w := t.worker(settings{Queues: []string{"default"}}).ready("default")
	t.produce(enqueue("Append", "by name"))[0].jid(t)
	w.did("ran", "by name")
	w.stop(t, 20*time.Second)

	broker.Host = h.addr
	t.room.amqpURL = broker.String()
	other := enqueue("Append", "by address")
	other["timeout"] = 5
	r := t.produce(other)[0]
	require.Equal(t, "Unreachable", r.Error)
	require.Regexp(t, "(?i)certificate|hostname|alternative name", r.Message)
	require.Zero(t, t.ready("default"))
}

// certificate makes one for a name, which the programs of this trial trust.
func (t *trial) certificate(name string) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "conformance"}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	dir, err := os.MkdirTemp(t.tmp, "tls-")
	require.NoError(t, err)
	ca, store := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.p12")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	t.room.env = []string{"SSL_CERT_FILE=" + ca, "NODE_EXTRA_CA_CERTS=" + ca}
	if t.client.name == "java" { // which reads a key store only
		out, err := exec.Command("keytool", "-importcert", "-noprompt", "-file", ca, "-keystore", store, "-storetype", "PKCS12", "-storepass", "public").CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.room.env = []string{"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=" + store + " -Djavax.net.ssl.trustStorePassword=public"}
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// queues has a worker on queues that exist, with arguments that no worker would declare, and on one that does not.
func queues(t *trial) {
	t.manage(http.MethodPut, "/api/vhosts/"+t.room.vhost, map[string]string{"default_queue_type": "quorum"}, nil)
	require.NoError(t, t.channel(func(ch *amqp.Channel) error {
		for queue, args := range map[string]amqp.Table{
			"quorum": {amqp.QueueTypeArg: amqp.QueueTypeQuorum}, "few": {amqp.QueueTypeArg: amqp.QueueTypeClassic, "x-max-priority": 3},
			"plain": {amqp.QueueTypeArg: amqp.QueueTypeClassic},
		} {
			if _, err := ch.QueueDeclare(wire.QueuePrefix+queue, true, false, false, false, args); err != nil {
				return err
			}
		}
		return nil
	}))
	all := []string{"quorum", "few", "plain"}
	for _, queue := range all {
		t.put(queue, job("Append", 5, "before-"+queue), job("FailSoon", 5, "fails-"+queue, 1))
	}
	t.serve()
	w := t.worker(settings{Queues: append(all, "new"), Concurrency: 2})
	for _, queue := range all {
		w.did("ran", "before-"+queue)
		t.eventually(func() bool { return w.count("ran", "fails-"+queue) == 2 }, "a job of %s is retried", queue)
	}
	w.ready("new")
	var made struct {
		Type      string         `json:"type"`
		Arguments map[string]any `json:"arguments"`
	}
	t.manage(http.MethodGet, "/api/queues/"+t.room.vhost+"/"+wire.QueuePrefix+"new", nil, &made)
	require.Equal(t, "classic", made.Type)
	require.EqualValues(t, wire.MaxPriority, made.Arguments["x-max-priority"])
	for _, queue := range append(all, "new") {
		t.produce(with(map[string]any{"queue": queue}, "Append", "after-"+queue))
		w.did("ran", "after-"+queue)
		t.eventually(func() bool { return t.empty(queue) }, "each job of %s is acknowledged", queue)
	}
	w.stop(t, 20*time.Second)
	require.Equal(t, 3*len(all)+len(all)+1, w.count("ran", ""), "each job once, but for those that fail once")
	require.Empty(t, t.records(wire.DeadJobs))
}
