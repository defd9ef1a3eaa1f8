package main

import (
	"bytes"
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
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// failover is how soon a client must connect to another host after it has lost its own.
const failover = 5 * time.Second

// hosts gives the producer and the worker three hosts. One is down, and the other two go down in
// turn.
func hosts(t *trial) {
	t.serve()
	t.declare("default")
	first, second, dead := t.host(t.brokerHost(), nil), t.host(t.brokerHost(), nil), t.host(t.brokerHost(), nil)
	dead.down()
	second.down()
	const concurrency, n = 4, 4000
	var w *worker
	var enqueued func() []string
	t.by(strings.Join([]string{dead.addr, first.addr, second.addr}, ","), func() {
		w = t.worker(settings{Queues: []string{"default"}, Concurrency: concurrency}).ready("default")
		enqueued = t.outage("job-", n)
	})
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
	// A job that ran and was not acknowledged runs again. A job that was not confirmed is enqueued
	// again.
	require.LessOrEqual(t, w.count("ran", "")-n, 2*(concurrency+1), "jobs ran twice that were not in flight")
}

// host is an address of the broker that can go down.
type host struct {
	addr, broker string
	tls          *tls.Config // nil for none

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool // of clients
	silent   bool

	returned atomic.Bool // the broker has returned a message
}

// host adds an address of the broker. It has TLS if it has a configuration.
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

// silence discards everything that is sent from now on, and leaves the connections open, like a
// network that loses every packet.
func (h *host) silence() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = true
}

func (h *host) isSilent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.silent
}

// end is one end of a connection over the host's network.
type end struct {
	net.Conn
	h *host
}

// Write discards p while the network is silent.
func (e end) Write(p []byte) (int, error) {
	if e.h.isSilent() {
		return len(p), nil
	}
	if bytes.Contains(p, []byte("NO_ROUTE")) {
		e.h.returned.Store(true)
	}
	return e.Conn.Write(p)
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
		_, _ = io.Copy(end{client, h}, broker)
		if !h.isSilent() { // otherwise the client must not notice the end
			_ = client.Close()
		}
	}()
	_, _ = io.Copy(end{broker, h}, client)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, client)
}

// crash makes the broker answer 541 INTERNAL_ERROR during publishes, because its channels crash.
// RabbitMQ 3.10 does so at a first publish to a stream if the leader of the stream coordinator
// dies.
func crash(t *trial) {
	t.serve()
	t.declare("default")
	const n = 4000
	text := func(i int) string { return fmt.Sprint("job-", i) }
	var commands []map[string]any
	for i := range n {
		c := withTimeout(150, enqueue("Append", text(i)))
		if i%2 == 1 {
			c["op"], c["in"] = "enqueue_in", 0.1
		}
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

// crashChannels crashes the channels of this trial's producers and workers, four times while there
// is a producer.
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

// secure gives the producer and the worker a host with TLS. The certificate of the host is signed
// by a private authority that they trust. It is for the host's name, and for none of its addresses.
// They must refuse a host whose certificate is signed by another authority.
func secure(t *trial) {
	t.serve()
	t.declare("default")
	private, other := t.authority(), t.authority()
	t.trust(private)
	plain := t.room.amqpURL
	to := func(host string) {
		broker, err := url.Parse(plain)
		require.NoError(t, err)
		broker.Scheme, broker.Host = "amqps", host
		t.room.amqpURL = broker.String()
	}
	named := func(h *host) string {
		_, port, err := net.SplitHostPort(h.addr)
		require.NoError(t, err)
		return "localhost:" + port
	}
	h, forged := t.host(t.brokerHost(), private.certify(t, "localhost")), t.host(t.brokerHost(), other.certify(t, "localhost"))
	to(named(h))
	w := t.worker(settings{Queues: []string{"default"}}).ready("default")
	t.produce(enqueue("Append", "by name"))[0].jid(t)
	w.did("ran", "by name")
	w.stop(t, 20*time.Second)

	refused := withTimeout(5, enqueue("Append", "refused"))
	to(h.addr)
	byAddress := t.startProducer(t.client, refused)
	to(named(forged))
	byOther := t.startProducer(t.client, refused)
	w = t.worker(settings{Queues: []string{"default"}})
	for what, p := range map[string]*producer{"for another name": byAddress, "of another authority": byOther} {
		r := p.results(t)[0]
		require.Equal(t, "Unreachable", r.Error, "a producer refuses a certificate %s", what)
		require.Regexp(t, "(?i)certificate|hostname|alternative name", r.Message)
	}
	require.False(t, t.consumed("default"), "a worker refuses a certificate of another authority")
	require.Zero(t, t.ready("default"))
	w.stop(t, 20*time.Second)
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// authority returns a new authority. All authorities have the same name, so only the signature
// distinguishes them.
func (t *trial) authority() *authority {
	a := &authority{certificate: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "conformance"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	a.certificate.Raw, a.key = a.sign(t, a.certificate)
	return a
}

// sign signs a certificate, and returns it with its key. An authority without a key signs its own
// certificate.
func (a *authority) sign(t *trial, template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	signer := a.key
	if signer == nil {
		signer = key
	}
	der, err = x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), signer)
	require.NoError(t, err)
	return der, key
}

// certify returns a certificate for the name of a server.
func (a *authority) certify(t *trial, name string) *tls.Config {
	der, key := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a broker"}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// trust makes the programs of this trial trust an authority.
func (t *trial) trust(a *authority) {
	dir, err := os.MkdirTemp(t.tmp, "tls-")
	require.NoError(t, err)
	ca, store := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.p12")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}), 0o600))
	t.room.env = []string{"SSL_CERT_FILE=" + ca, "NODE_EXTRA_CA_CERTS=" + ca}
	if t.client.name == "java" { // it reads only a key store
		out, err := exec.Command("keytool", "-importcert", "-noprompt", "-file", ca, "-keystore", store, "-storetype", "PKCS12", "-storepass", "public").CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.room.env = []string{"JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=" + store + " -Djavax.net.ssl.trustStorePassword=public"}
	}
}

// queues runs a worker on existing queues, with arguments that no worker would declare, and on one
// that does not exist.
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
	require.Equal(t, "classic", made.Type, "a missing queue is declared as a classic one")
	require.EqualValues(t, wire.MaxPriority, made.Arguments["x-max-priority"], "a missing queue is declared with priorities")
	for _, queue := range append(all, "new") {
		t.produce(with(map[string]any{"queue": queue}, "Append", "after-"+queue))
		w.did("ran", "after-"+queue)
		t.eventually(func() bool { return t.empty(queue) }, "each job of %s is acknowledged", queue)
	}
	w.stop(t, 20*time.Second)
	require.Equal(t, 3*len(all)+len(all)+1, w.count("ran", ""), "each job once, but for those that fail once")
	require.Empty(t, t.records(wire.DeadJobs))
}
