//go:build plugin

package plugintest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// archive is a program that moves the messages of the queue waiting into the tables of the archived
// rabbitmq_delayed_message_exchange, in their form in this version of RabbitMQ. Each belongs to the
// exchange that its type names. With Khepri, the archived plugin started Mnesia itself.
const archive = `
	case mnesia:system_info(use_dir) of
		true -> ok;
		false ->
			application:stop(mnesia),
			application:set_env(mnesia, dir, filename:join(rabbit:data_dir(), "tables")),
			ok = mnesia:create_schema([node()]),
			ok = mnesia:start()
	end,
	Table = list_to_atom("rabbit_delayed_message" ++ atom_to_list(node())),
	Index = list_to_atom(atom_to_list(Table) ++ "_index"),
	{atomic, ok} = mnesia:create_table(Table, [{record_name, delay_entry}, {attributes, [delay_key, delivery, ref]}, {type, bag}, {disc_copies, [node()]}]),
	{atomic, ok} = mnesia:create_table(Index, [{record_name, delay_index}, {attributes, [delay_key, const]}, {type, ordered_set}, {disc_copies, [node()]}]),
	{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"waiting">>)),
	Get = fun Get(N) ->
		case rabbit_amqqueue:basic_get(Q, true, self(), <<"test">>, rabbit_queue_type:init()) of
			{empty, _} -> N;
			{ok, _, {_, _, _, _, Message}, _} ->
				Old = element(1, Message) =:= basic_message,
				Content = rabbit_binary_parser:ensure_content_decoded(
					case Old of true -> element(4, Message); false -> mc:protocol_state(mc:convert(mc_amqpl, Message)) end),
				Properties = element(3, Content),
				{_, Delay} = rabbit_misc:table_lookup(element(4, Properties), <<"x-delay">>),
				{ok, X} = rabbit_exchange:lookup(rabbit_misc:r(<<"/">>, exchange, element(12, Properties))),
				Key = {delay_key, element(11, Properties) * 1000 + Delay, X},
				Stored = case Old of true -> rabbit_basic:delivery(false, false, Message, undefined); false -> Message end,
				ok = mnesia:dirty_write(Index, {delay_index, Key, true}),
				ok = mnesia:dirty_write(Table, {delay_entry, Key, Stored, make_ref()}),
				Get(N + 1)
		end
	end,
	{ok, Any} = rabbit_exchange:lookup(rabbit_misc:r(<<"/">>, exchange, <<"deliver.direct">>)),
	ok = mnesia:dirty_write(Index, {delay_index, {delay_key, 1, Any}, true}), % of no message
	Get(0).`

// archived is how many messages archiveMessages returns.
const archived = 1000

// archiveMessages publishes messages, disables the plugin, and moves the messages into the tables
// of the archived one. The last one is due in an hour, and is not among those that it returns.
func archiveMessages(t *testing.T, n *node, last string) map[string]sent {
	t.Helper()
	a := n.application(t)
	fabric(t, a, "arrivals")
	require.NoError(t, a.ExchangeDeclare("source", "fanout", true, false, false, false, nil))
	a.queue(t, "waiting", "source", "", nil)
	all := map[string]sent{}
	for i := range archived {
		inner := []string{"direct", "fanout", "topic", "headers"}[i%4]
		now, delay := time.Now().Truncate(time.Second), 1000+rand.IntN(30_000)
		p := amqp.Publishing{
			Headers: headers(), ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: amqp.Persistent, CorrelationId: "c", ReplyTo: "replies",
			MessageId: fmt.Sprint(t.Name(), i), Timestamp: now, Type: "deliver." + inner, AppId: "app", Body: fmt.Append(nil, "body ", i, "\xff"),
		}
		p.Headers["x-delay"], p.Headers["a"] = int32(delay), "1"
		if i%8 < 4 {
			p.UserId = "guest"
		}
		all[p.MessageId] = sent{p, "deliver." + inner, "order." + inner, now.Add(time.Duration(delay) * time.Millisecond)}
		_, err := a.PublishWithDeferredConfirm("source", "order."+inner, false, false, p)
		require.NoError(t, err)
	}
	a.send(t, "source", "order.direct", hour, amqp.Publishing{Type: "deliver.direct", Timestamp: time.Now(), MessageId: last})
	require.NoError(t, n.SetPlugins(t.Context()))
	moved, err := n.Eval(t.Context(), archive)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprint(archived+1), moved)
	return all
}

// testArchived takes over what the archived plugin has left in its tables while ours was not
// enabled.
func testArchived(t *testing.T, n *node) {
	all := archiveMessages(t, n, "later")
	require.NoError(t, n.SetPlugins(t.Context(), plugin))
	arrivals(t, n.application(t), "arrivals", all)
	n.logs(t, fmt.Sprintf("taken over %d delayed messages", archived+1))
	left, err := n.Eval(t.Context(), `[mnesia:table_info(T, size) || T <- mnesia:system_info(tables), lists:prefix("rabbit_delayed_message", atom_to_list(T))].`)
	require.NoError(t, err)
	require.Equal(t, "[0,0]", left)
	require.EqualValues(t, 1, n.vhost(t, "/").Get("overview.sets.scheduled-jobs.total").Int())
	_, err = n.Eval(t.Context(), `[mnesia:delete_table(T) || T <- mnesia:system_info(tables), lists:prefix("rabbit_delayed_message", atom_to_list(T))].`)
	require.NoError(t, err)
}

// testRescue delivers what waits in files that the archived plugin has left behind on another node,
// with RabbitMQ 3.10. That node is killed before it has written all into the files of the tables.
func testRescue(t *testing.T, n *node) {
	t.Setenv("MILLRACE_TEST_RABBITMQ", "")
	old := start(t, "millrace.sidecar = /bin/false\n")
	old.put(t, "/api/queues/%2F/scheduled_jobs", `{"durable":true,"arguments":{"x-queue-type":"stream"}}`)
	all := archiveMessages(t, old, "delivered before")
	_, err := old.Eval(t.Context(), `dumped = mnesia:dump_log(),
		Table = list_to_atom("rabbit_delayed_message" ++ atom_to_list(node())),
		Last = lists:max(mnesia:dirty_all_keys(Table)),
		ok = mnesia:dirty_delete(Table, Last),
		ok = mnesia:sync_log().`)
	require.NoError(t, err)
	folder, err := old.Eval(t.Context(), "list_to_binary(mnesia:system_info(directory)).")
	require.NoError(t, err)
	require.NoError(t, old.Kill())
	left := filepath.Join(n.dir, "left")
	require.NoError(t, os.CopyFS(left, os.DirFS(strings.Trim(folder, `<>"`))))
	rescue := func(folder string) string {
		said, err := n.Eval(t.Context(), fmt.Sprintf("rabbit_millrace_rescue:run(%q).", folder))
		require.NoError(t, err)
		return said
	}
	require.Contains(t, rescue(n.dir), "there are no files")
	require.Equal(t, fmt.Sprintf("{rescued,%d}", archived), rescue(left))
	require.Contains(t, rescue(left), "there are no files")
	arrivals(t, n.application(t), "arrivals", all)
}
