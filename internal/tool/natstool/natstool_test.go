package natstool_test

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/natstool"
)

type object = map[string]any

// desk runs operations against a real server.
type desk struct {
	t    *testing.T
	tool *natstool.Tool
	url  string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, tool: natstool.New(), url: testkit.NATSProcess(t)}
	t.Cleanup(func() { _ = d.tool.Close() })
	return d
}

func (d *desk) run(config object, change ...func(*tool.Call)) (object, error) {
	d.t.Helper()
	config["auth"] = "nats_credential"
	call := &tool.Call{Config: config, Log: io.Discard, Credentials: func(context.Context, ...string) (map[string]*tool.Credential, error) {
		return map[string]*tool.Credential{"nats_credential": {Type: "nats", Data: object{"nats_url": d.url}}}, nil
	}}
	for _, c := range change {
		c(call)
	}
	res, err := d.tool.Run(d.t.Context(), call)
	if err != nil {
		return nil, err
	}
	var data object
	if err := json.Unmarshal(res.Data, &data); err != nil {
		d.t.Fatal(err)
	}
	return data, nil
}

// gives checks what an operation returns.
func (d *desk) gives(config, want object) {
	d.t.Helper()
	got, err := d.run(config)
	if err != nil {
		d.t.Fatalf("%v: %v", config, err)
	}
	for k := range got {
		if _, asked := want[k]; !asked {
			delete(got, k)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		d.t.Errorf("%v: %s", config, diff)
	}
}

// fails checks the kind of error of an operation.
func (d *desk) fails(config object, kind string, words string) {
	d.t.Helper()
	_, err := d.run(config)
	e, ok := err.(*tool.Error)
	if !ok || e.Kind != kind || !strings.Contains(e.Message, words) {
		d.t.Errorf("%v: %v, want %s with %q", config, err, kind, words)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.fails(object{"operation": "kv_get", "bucket": "sessions", "key": "a"}, tool.KindNotFound, "bucket")
	d.gives(object{"operation": "kv_put", "bucket": "sessions", "key": "user.1", "value": object{"n": 1}, "create": true}, object{"status": "success", "revision": 1.0})
	d.gives(object{"operation": "kv_get", "bucket": "sessions", "key": "user.1"}, object{"status": "success", "value": object{"n": 1.0}, "key": "user.1"})
	d.gives(object{"operation": "kv_put", "bucket": "sessions", "key": "word", "value": "plain text"}, object{"status": "success"})
	d.gives(object{"operation": "kv_get", "bucket": "sessions", "key": "word"}, object{"value": "plain text"})
	d.gives(object{"operation": "kv_keys", "bucket": "sessions", "pattern": "user.*"}, object{"keys": []any{"user.1"}, "count": 1.0})
	d.gives(object{"operation": "kv_put", "bucket": "sessions", "key": "brief", "value": 1, "ttl": "1h"}, object{"status": "success"})
	d.gives(object{"operation": "kv_put", "bucket": "sessions", "key": "brief", "value": 2, "ttl": "1h"}, object{"status": "success"})
	d.gives(object{"operation": "kv_get", "bucket": "sessions", "key": "brief"}, object{"value": 2.0})
	d.gives(object{"operation": "kv_delete", "bucket": "sessions", "key": "user.1"}, object{"status": "success"})
	d.gives(object{"operation": "kv_get", "bucket": "sessions", "key": "user.1"}, object{"status": "not_found", "value": nil})
	d.gives(object{"operation": "kv_purge", "bucket": "sessions", "key": "word"}, object{"status": "success"})
	d.fails(object{"operation": "kv_put", "bucket": "sessions", "key": "a b", "value": 1}, tool.KindConfig, "key")
	d.fails(object{"operation": "kv_put", "bucket": "sessions", "key": "a"}, tool.KindConfig, "value is missing")
}

func TestObjects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.gives(object{"operation": "object_put", "bucket": "files", "object": "a.txt", "data": "hello", "description": "greeting", "create": true}, object{"size": 5.0})
	d.gives(object{"operation": "object_get", "bucket": "files", "object": "a.txt"}, object{"data": "hello", "size": 5.0})
	d.gives(object{"operation": "object_put", "bucket": "files", "object": "b.bin", "data": "AP8=", "encoding": "base64"}, object{"size": 2.0})
	d.gives(object{"operation": "object_get", "bucket": "files", "object": "b.bin"}, object{"data": "AP8=", "encoding": "base64"})
	d.gives(object{"operation": "object_info", "bucket": "files", "object": "a.txt"}, object{"name": "a.txt", "description": "greeting", "chunks": 1.0})
	d.gives(object{"operation": "object_list", "bucket": "files"}, object{"count": 2.0})
	d.gives(object{"operation": "object_delete", "bucket": "files", "object": "a.txt"}, object{"status": "success"})
	d.fails(object{"operation": "object_get", "bucket": "files", "object": "a.txt"}, tool.KindNotFound, "object")
	kept := &keeper{}
	got, err := d.run(object{"operation": "object_put", "bucket": "files", "object": "large", "data": strings.Repeat("x", 5000)})
	if err != nil {
		t.Fatal(got, err)
	}
	got, err = d.run(object{"operation": "object_get", "bucket": "files", "object": "large"}, func(c *tool.Call) { c.Blobs, c.InlineLimit = kept, 100 })
	if err != nil || kept.n != 5000 || got["data"].(object)["_ref"] != "noetl://kept" {
		t.Errorf("%v, %d bytes kept: %v", got, kept.n, err)
	}
}

// keeper counts what it is given.
type keeper struct{ n int64 }

func (k *keeper) Put(_ context.Context, b tool.Blob, r io.Reader) (*tool.Stored, error) {
	var err error
	k.n, err = io.Copy(io.Discard, r)
	return &tool.Stored{StoredResult: event.StoredResult{Ref: "noetl://kept", Bytes: k.n, MediaType: b.MediaType}}, err
}

func (*keeper) Open(context.Context, string, int64, int64) (io.ReadCloser, error) { return nil, io.EOF }

func TestStreams(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	conn, err := nats.Connect(d.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateConsumer(t.Context(), "ORDERS", jetstream.ConsumerConfig{Durable: "drain", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	d.gives(object{"operation": "js_publish", "subject": "orders.new", "data": object{"id": 1}, "headers": object{"Nats-Msg-Id": "1", "X": "y"}}, object{"stream": "ORDERS", "seq": 1.0, "duplicate": false})
	d.gives(object{"operation": "js_publish", "subject": "orders.new", "data": object{"id": 1}, "headers": object{"Nats-Msg-Id": "1"}}, object{"duplicate": true})
	d.gives(object{"operation": "js_publish", "subject": "orders.text", "data": "words"}, object{"seq": 2.0})
	d.gives(object{"operation": "js_get_msg", "stream": "ORDERS", "seq": 1}, object{"subject": "orders.new", "data": object{"id": 1.0}})
	d.gives(object{"operation": "js_get_msg", "stream": "ORDERS", "last": true}, object{"data": "words", "seq": 2.0})
	d.gives(object{"operation": "js_get_msg", "stream": "ORDERS", "subject": "orders.new"}, object{"seq": 1.0})
	got, err := d.run(object{"operation": "js_consume", "stream": "ORDERS", "consumer": "drain", "batch": 10, "timeout_ms": 500})
	if err != nil || got["count"] != 2.0 || got["acked"] != 2.0 {
		t.Fatalf("%v, %v", got, err)
	}
	first := got["messages"].([]any)[0].(object)
	if first["subject"] != "orders.new" || first["stream_seq"] != 1.0 || first["headers"].(object)["X"] != "y" {
		t.Errorf("%v", first)
	}
	d.gives(object{"operation": "js_consume", "stream": "ORDERS", "consumer": "drain", "timeout_ms": 100}, object{"count": 0.0})
	info, err := d.run(object{"operation": "js_stream_info", "stream": "ORDERS"})
	if err != nil || info["state"].(object)["messages"] != 2.0 {
		t.Errorf("%v, %v", info, err)
	}
	d.fails(object{"operation": "js_consume", "stream": "ORDERS", "consumer": "nobody"}, tool.KindNotFound, "consumer")
	d.fails(object{"operation": "js_publish", "subject": "elsewhere", "data": 1}, tool.KindNotFound, "")
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.fails(object{"operation": "kv_burn"}, tool.KindConfig, "kv_get")
	d.fails(object{"operation": "js_stream_info", "stream": "NOETL_COMMANDS"}, tool.KindAuth, "belongs to NoETL")
	d.fails(object{"operation": "js_publish", "subject": "noetl.commands.shared.1", "data": 1}, tool.KindAuth, "belongs to NoETL")
	d.url = "nats://127.0.0.1:1"
	d.fails(object{"operation": "kv_get", "bucket": "b", "key": "k"}, tool.KindConnection, "cannot be reached")
	d.url = ""
	d.fails(object{"operation": "kv_get", "bucket": "b", "key": "k"}, tool.KindConfig, "no NATS server is named")
}
