package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// proxied returns a broker, and the same broker with proxies before its two ports.
func proxied(t *testing.T) (direct, through *testBroker, proxies []*brokertest.Proxy) {
	direct = newTestBroker(t)
	proxies = []*brokertest.Proxy{brokertest.NewProxy(t, direct.amqpURL)}
	through = &testBroker{Vhost: direct.Vhost, ch: direct.ch, first: direct.first, amqpURL: proxies[0].URL()}
	if direct.streamURL != "" {
		proxies = append(proxies, brokertest.NewProxy(t, direct.streamURL))
		through.streamURL = proxies[1].URL()
	}
	return direct, through, proxies
}

func TestConnectionCut(t *testing.T) {
	b, through, proxies := proxied(t)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := b.stream(t)
			b.publish(t, stream, b.numbered(0, 10)...)
			tr := c.open(t, through, Config{})
			_, err := tr.Fetch(t.Context(), stream, b.first) // opens a connection that is kept
			require.NoError(t, err)
			r := startReading(t, tr, stream, First)
			r.next(t)
			for _, p := range proxies {
				p.Cut(t)
			}
			require.ErrorIs(t, r.end(t), ErrLost)
			require.ErrorIs(t, tr.Read(t.Context(), stream, First, nil), ErrLost)
			_, err = tr.Fetch(t.Context(), stream, b.first)
			require.ErrorIs(t, err, ErrLost)
			_, _, err = tr.Last(t.Context(), stream)
			require.ErrorIs(t, err, ErrLost)
			for _, p := range proxies {
				p.Heal(t)
			}
			require.Len(t, readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == b.first+9 }), 10)
			_, err = tr.Fetch(t.Context(), stream, b.first)
			require.NoError(t, err)
		})
	}
}

// In a network that loses every packet, heartbeats, timeouts and contexts end every wait.
func TestConnectionFrozen(t *testing.T) {
	b, through, proxies := proxied(t)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := b.stream(t)
			b.publish(t, stream, b.numbered(0, 10)...)
			tr := c.open(t, through, Config{Heartbeat: time.Second, Timeout: 2 * time.Second})
			r := startReading(t, tr, stream, First)
			r.next(t)
			doomed := startReading(t, tr, stream, First)
			doomed.next(t)
			for _, p := range proxies {
				p.Freeze(t)
			}
			doomed.cancel()
			require.NoError(t, doomed.end(t))

			require.ErrorIs(t, r.end(t), ErrLost)
			require.ErrorIs(t, tr.Read(t.Context(), stream, First, nil), ErrLost)
			_, _, err := tr.Last(t.Context(), stream)
			require.ErrorIs(t, err, ErrLost)
			_, err = tr.Fetch(t.Context(), stream, b.first)
			require.ErrorIs(t, err, ErrLost)
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			require.NoError(t, tr.Read(short, stream, First, nil))
			_, err = tr.Fetch(short, stream, b.first)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			for _, p := range proxies {
				p.Heal(t)
			}
		})
	}
}

// An idle stream does not lose its connection, and neither does a deliver that takes several
// heartbeats.
func TestPatience(t *testing.T) {
	b := newTestBroker(t)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := on(t, b.Vhost)
			stream := b.stream(t)
			for range 30 {
				b.publish(t, stream, amqp.Publishing{Body: make([]byte, 1<<20)})
			}
			tr := c.open(t, b, Config{Ahead: 2 << 20, Heartbeat: time.Second})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var seen atomic.Int32
			result := make(chan error, 1)
			go func() {
				result <- tr.Read(ctx, stream, First, func(batch []wire.Record) error {
					if seen.Add(int32(len(batch))) == int32(len(batch)) {
						<-time.After(5 * time.Second)
					}
					return nil
				})
			}()
			require.Eventually(t, func() bool { return seen.Load() == 30 }, time.Minute, 10*time.Millisecond)
			select {
			case err := <-result:
				require.FailNow(t, "the read ended", "%v", err)
			case <-time.After(5 * time.Second):
			}
			b.publish(t, stream, b.numbered(0, 1)...)
			require.Eventually(t, func() bool { return seen.Load() == 31 }, time.Minute, 10*time.Millisecond)
			cancel()
			require.NoError(t, <-result)
		})
	}
}

func TestReadersSurviveBrokerRestart(t *testing.T) {
	b := on(t, brokertest.Own(t))
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, 10)...)
	var transports []Transport
	var readings []*reading
	for _, c := range b.transports() {
		tr := c.open(t, b, Config{})
		r := startReading(t, tr, stream, First)
		for range 10 {
			r.next(t)
		}
		transports, readings = append(transports, tr), append(readings, r)
	}
	b.Kill(t)
	for i, tr := range transports {
		require.ErrorIs(t, readings[i].end(t), ErrLost)
		require.ErrorIs(t, tr.Read(t.Context(), stream, First, nil), ErrLost)
	}
	b.Restart(t)
	after := on(t, b.Vhost)
	for _, tr := range transports {
		// The stream must never seem to be missing, not even right after the start.
		require.Len(t, readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == b.first+9 }), 10)
		r := startReading(t, tr, stream, b.first+10)
		after.publish(t, stream, b.numbered(10, 1)...)
		r.next(t)
		r.cancel()
		require.NoError(t, r.end(t))
	}
}

// A stream's process may die while its queue, its node and the connection survive. A reader must
// not wait for that process forever.
func TestStreamProcessKilled(t *testing.T) {
	b := on(t, brokertest.Erlang(t))
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := b.stream(t)
			b.publish(t, stream, b.numbered(0, 10)...)
			tr := c.open(t, b, Config{})
			atEnd := make(chan struct{}, 1)
			records := readUntilInBackground(t, tr, stream, func(r wire.Record) bool {
				if r.Offset == b.first+9 {
					atEnd <- struct{}{}
				}
				return string(r.Body) == "after"
			})
			await(t, atEnd)
			b.Eval(t, fmt.Sprintf(`begin {ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)),
				exit(maps:get(leader_pid, amqqueue:get_type_state(Q)), kill) end.`, b.Vhost.Name, stream))
			publishPatiently(t, b, stream, "after")
			require.Len(t, records(), 11)
		})
	}
}

// publishPatiently publishes until it gets a confirm. When a stream's process dies, RabbitMQ 3.10
// sometimes neither confirms nor refuses a message that was on its way to it.
func publishPatiently(t testing.TB, b *testBroker, stream, body string) {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		ch := b.Channel(t)
		defer ch.Close()
		require.NoError(t, ch.Confirm(false))
		c, err := ch.PublishWithDeferredConfirm("", stream, false, false, amqp.Publishing{Body: []byte(body)})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		confirmed, err := c.WaitContext(ctx)
		return err == nil && confirmed
	}, "a confirm")
}

func TestOpenFallsBack(t *testing.T) {
	b := newTestBroker(t)
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, 1)...)
	proxy := brokertest.NewProxy(t, b.amqpURL)
	proxy.Cut(t)
	var log strings.Builder
	tr, err := Open(t.Context(), Config{AMQPURL: b.amqpURL, StreamURL: strings.Replace(proxy.URL(), "amqp", "rabbitmq-stream", 1), Patience: time.Millisecond,
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer tr.Close()
	require.Equal(t, "amqp", tr.Name())
	require.Contains(t, log.String(), "WARN")
	require.NotContains(t, log.String(), b.Owner.Password)
	readUntil(t, tr, stream, First, func(wire.Record) bool { return true })
}

// Open waits for the stream listener, because a broker that starts speaks AMQP a moment before it
// speaks streams.
func TestOpenWaitsForStreamListener(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return
	}
	proxy := brokertest.NewProxy(t, b.streamURL)
	proxy.Cut(t)
	time.AfterFunc(300*time.Millisecond, func() { proxy.Heal(t) })
	tr, err := Open(t.Context(), Config{AMQPURL: b.amqpURL, StreamURL: proxy.URL(), Patience: 10 * time.Second})
	require.NoError(t, err)
	require.Equal(t, "native", tr.Name())
	require.NoError(t, tr.Close())
}

func TestOpenFails(t *testing.T) {
	b := newTestBroker(t)
	_, err := Open(t.Context(), Config{})
	require.ErrorContains(t, err, "no AMQP URL")
	_, err = Open(t.Context(), Config{AMQPURL: "amqp://127.0.0.1:1"})
	require.ErrorIs(t, err, ErrLost)
	_, err = Open(t.Context(), Config{AMQPURL: "nonsense://", StreamURL: "nonsense://"})
	require.Error(t, err)
	wrong := strings.NewReplacer(b.Owner.Password, "wrong")
	start := time.Now()
	_, err = Open(t.Context(), Config{AMQPURL: wrong.Replace(b.amqpURL), StreamURL: wrong.Replace(b.streamURL), Patience: 2 * time.Minute})
	require.ErrorIs(t, err, ErrRefused)
	elsewhere := strings.NewReplacer(b.Vhost.Name, "elsewhere")
	_, err = Open(t.Context(), Config{AMQPURL: elsewhere.Replace(b.amqpURL), StreamURL: elsewhere.Replace(b.streamURL),
		Patience: 2 * time.Minute})
	require.ErrorIs(t, err, ErrRefused)
	require.Less(t, time.Since(start), time.Minute, "a refusal is not waited for")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = Open(ctx, Config{AMQPURL: b.amqpURL, StreamURL: "rabbitmq-stream://127.0.0.1:1", Patience: 2 * time.Minute})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestNotPermitted(t *testing.T) {
	b := newTestBroker(t)
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, 1)...)
	other := b.AddUser(t, "other", brokertest.Permissions{Read: "^$"})
	limited := &testBroker{Vhost: b.Vhost, ch: b.ch, amqpURL: other.AMQPURL(), streamURL: other.StreamURL()}
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			tr := c.open(t, limited, Config{})
			require.ErrorIs(t, tr.Read(t.Context(), stream, First, nil), ErrRefused)
			_, err := tr.Fetch(t.Context(), stream, b.first)
			require.ErrorIs(t, err, ErrRefused)
			_, _, err = tr.Last(t.Context(), stream)
			require.ErrorIs(t, err, ErrRefused)
		})
	}
}

// The broker does not check the user id of a native publisher. So users that publish only through
// the default exchange must not have write permission on streams: with it they could pose as
// Millrace.
func TestUserIDOfNativePublisher(t *testing.T) {
	b := newTestBroker(t)
	stream := b.stream(t)
	if !b.hasNative(t) {
		return
	}
	forged := append([]byte{0, 0x53, sectionProperties, 0xc0, 8, 2, 0x40, 0xa0, 4, 'r', 'o', 'o', 't'}, dataMessage("x")...)
	newNativePublisher(t, b, stream).publish(single(forged))
	onlyDefault := b.AddUser(t, "client", brokertest.Permissions{Configure: "^$", Write: `^amq\.default$`, Read: "^$"})
	ch, err := onlyDefault.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Publish("", stream, false, false, amqp.Publishing{UserId: onlyDefault.Name, Body: []byte("y")}))
	to, err := parseStreamURL(onlyDefault.StreamURL())
	require.NoError(t, err)
	l, err := dial(t.Context(), Config{}.withDefaults(), to, "forges")
	require.NoError(t, err)
	defer l.close()
	_, err = l.ask(newRequest(cmdDeclarePublisher).u8(0).str("").str(stream))
	require.ErrorIs(t, err, ErrRefused)

	tr := transportCases[0].open(t, b, Config{})
	records := readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == 1 })
	require.Equal(t, "root", records[0].UserID)
	require.Equal(t, onlyDefault.Name, records[1].UserID)
}

// Many queries run concurrently, and some callers do not wait for the answer.
func TestManyQueries(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, b.numbered(0, 1000)...)
		results := make(chan error)
		for i := range 100 {
			go func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%10 == 0 {
					time.AfterFunc(time.Duration(i)*time.Millisecond/10, cancel)
				}
				r, err := tr.Fetch(ctx, stream, b.first+int64(i*7))
				if err == nil && string(r.Body) != fmt.Sprint(b.first+int64(i*7)) {
					err = fmt.Errorf("%d is %q", r.Offset, r.Body)
				}
				if ctx.Err() != nil && errors.Is(err, context.Canceled) {
					err = nil
				}
				results <- err
			}()
		}
		for range 100 {
			require.NoError(t, <-results)
		}
	})
}

// Both protocols work over TLS.
func TestTLS(t *testing.T) {
	b := newTestBroker(t)
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, 10)...)
	certificate := brokertest.NewCertificate(t, "127.0.0.1", "localhost")
	through := &testBroker{Vhost: b.Vhost, ch: b.ch}
	through.amqpURL = certificate.Front(t, b.amqpURL, "amqps")
	if b.streamURL != "" {
		through.streamURL = certificate.Front(t, b.streamURL, "rabbitmq-stream+tls")
	}
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			tr := c.open(t, through, Config{TLS: certificate.Config()})
			require.Equal(t, c.name, tr.Name())
			require.Len(t, readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == b.first+9 }), 10)
		})
	}
	_, err := Open(t.Context(), Config{AMQPURL: through.amqpURL, StreamURL: through.streamURL, Patience: time.Millisecond})
	require.ErrorContains(t, err, "certificate", "its issuer is unknown")
}
