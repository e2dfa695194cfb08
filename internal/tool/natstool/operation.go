package natstool

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/tool"
)

// operation is one call with its connection.
type operation struct {
	f    tool.Fields
	call *tool.Call
	js   jetstream.JetStream
}

type object = map[string]any

var operations = map[string]func(context.Context, *operation) (any, error){
	"kv_get": kvGet, "kv_put": kvPut, "kv_delete": kvDelete, "kv_purge": kvPurge, "kv_keys": kvKeys,
	"object_get": objectGet, "object_put": objectPut, "object_delete": objectDelete, "object_list": objectList, "object_info": objectInfo,
	"js_publish": publish, "js_consume": consume, "js_get_msg": message, "js_stream_info": streamInfo,
}

// word is a field that must be there.
func (o *operation) word(names ...string) (string, error) {
	v, err := o.f.String(names...)
	if err == nil && v == "" {
		err = tool.ConfigErrorf("%s is missing", names[0])
	}
	return v, err
}

// count is a whole number within bounds.
func (o *operation) count(name string, def, most int) (int, error) {
	text, err := o.f.String(name)
	if err != nil || text == "" {
		return def, err
	}
	var n int
	if err := json.Unmarshal([]byte(text), &n); err != nil || n < 1 {
		return 0, tool.ConfigErrorf("%s must be a whole number from 1 to %d, not %q", name, most, text)
	}
	return min(n, most), nil
}

func (o *operation) bucket(ctx context.Context) (jetstream.KeyValue, string, error) {
	name, err := o.word("bucket")
	if err != nil {
		return nil, "", err
	}
	kv, err := o.js.KeyValue(ctx, name)
	create, flagErr := o.f.Bool(false, "create")
	if flagErr != nil {
		return nil, "", flagErr
	}
	if errors.Is(err, jetstream.ErrBucketNotFound) && create {
		kv, err = o.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, LimitMarkerTTL: time.Minute})
	}
	return kv, name, err
}

func (o *operation) entry(ctx context.Context) (kv jetstream.KeyValue, bucket, key string, err error) {
	if kv, bucket, err = o.bucket(ctx); err == nil {
		key, err = o.word("key")
	}
	return kv, bucket, key, err
}

func kvGet(ctx context.Context, o *operation) (any, error) {
	kv, bucket, key, err := o.entry(ctx)
	if err != nil {
		return nil, err
	}
	e, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return object{"status": "not_found", "bucket": bucket, "key": key, "value": nil}, nil
	}
	if err != nil {
		return nil, err
	}
	return object{"status": "success", "bucket": bucket, "key": key, "value": value(e.Value()), "revision": e.Revision()}, nil
}

// kvPut stores a value. A time to live needs a bucket that admits one for each
// key; the error of one that does not is passed on.
func kvPut(ctx context.Context, o *operation) (any, error) {
	kv, bucket, key, err := o.entry(ctx)
	if err != nil {
		return nil, err
	}
	payload, err := o.payload("value", "data")
	if err != nil {
		return nil, err
	}
	ttl, err := o.f.Duration("ttl")
	if err != nil {
		return nil, err
	}
	revision, err := put(ctx, kv, key, payload, ttl)
	if err != nil {
		return nil, err
	}
	return object{"status": "success", "bucket": bucket, "key": key, "revision": revision}, nil
}

// put writes a value; only keys that are made anew can be given a time to live.
func put(ctx context.Context, kv jetstream.KeyValue, key string, payload []byte, ttl time.Duration) (uint64, error) {
	if ttl <= 0 {
		return kv.Put(ctx, key, payload)
	}
	revision, err := kv.Create(ctx, key, payload, jetstream.KeyTTL(ttl))
	if errors.Is(err, jetstream.ErrKeyExists) {
		if err := kv.Purge(ctx, key); err != nil {
			return 0, err
		}
		revision, err = kv.Create(ctx, key, payload, jetstream.KeyTTL(ttl))
	}
	return revision, err
}

func kvDelete(ctx context.Context, o *operation) (any, error) {
	return o.remove(ctx, func(kv jetstream.KeyValue, key string) error { return kv.Delete(ctx, key) })
}

func kvPurge(ctx context.Context, o *operation) (any, error) {
	return o.remove(ctx, func(kv jetstream.KeyValue, key string) error { return kv.Purge(ctx, key) })
}

func (o *operation) remove(ctx context.Context, how func(jetstream.KeyValue, string) error) (any, error) {
	kv, bucket, key, err := o.entry(ctx)
	if err == nil {
		err = how(kv, key)
	}
	if err != nil {
		return nil, err
	}
	return object{"status": "success", "bucket": bucket, "key": key}, nil
}

// maxKeys bounds a list of keys.
const maxKeys = 100_000

func kvKeys(ctx context.Context, o *operation) (any, error) {
	kv, bucket, err := o.bucket(ctx)
	if err != nil {
		return nil, err
	}
	pattern, err := o.f.String("pattern")
	if err != nil {
		return nil, err
	}
	lister, err := kv.ListKeys(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = lister.Stop() }()
	keys := []string{}
	for key := range lister.Keys() {
		if ok, err := path.Match(pattern, key); pattern != "" && (err != nil || !ok) {
			continue
		}
		if keys = append(keys, key); len(keys) > maxKeys {
			return nil, &tool.Error{Kind: tool.KindResourceLimit, Code: "NATS_TOO_LARGE", Message: "the bucket has too many keys to list; give a pattern"}
		}
	}
	return object{"status": "success", "bucket": bucket, "keys": keys, "count": len(keys)}, ctx.Err()
}

func (o *operation) objects(ctx context.Context) (jetstream.ObjectStore, string, error) {
	name, err := o.word("bucket")
	if err != nil {
		return nil, "", err
	}
	create, err := o.f.Bool(false, "create")
	if err != nil {
		return nil, "", err
	}
	store, err := o.js.ObjectStore(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) && create {
		store, err = o.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name})
	}
	return store, name, err
}

func (o *operation) named(ctx context.Context) (store jetstream.ObjectStore, bucket, name string, err error) {
	if store, bucket, err = o.objects(ctx); err == nil {
		name, err = o.word("object", "object_name", "key")
	}
	return store, bucket, name, err
}

// objectGet reads an object. One that is too large for an event goes where
// large data is kept, without being held.
func objectGet(ctx context.Context, o *operation) (any, error) {
	store, bucket, name, err := o.named(ctx)
	if err != nil {
		return nil, err
	}
	body, err := store.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	info, err := body.Info()
	if err != nil {
		return nil, err
	}
	out := object{"status": "success", "bucket": bucket, "name": name, "size": info.Size}
	if o.call.Blobs != nil && o.call.InlineLimit > 0 && info.Size > uint64(o.call.InlineLimit) {
		at, err := o.call.Blobs.Put(ctx, tool.Blob{Name: name, MediaType: "application/octet-stream"}, body)
		if err != nil {
			return nil, err
		}
		out["data"] = object{"_ref": at.Ref, "bytes": at.Bytes, "media_type": at.MediaType, "sha256": at.SHA256}
		return out, nil
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	encoding, err := o.f.String("encoding")
	if err != nil {
		return nil, err
	}
	if encoding == "base64" || !utf8.Valid(raw) {
		out["data"], out["encoding"] = base64.StdEncoding.EncodeToString(raw), "base64"
	} else {
		out["data"] = string(raw)
	}
	return out, nil
}

func objectPut(ctx context.Context, o *operation) (any, error) {
	store, bucket, name, err := o.named(ctx)
	if err != nil {
		return nil, err
	}
	payload, err := o.payload("data", "value")
	if err != nil {
		return nil, err
	}
	if encoding, err := o.f.String("encoding"); err != nil {
		return nil, err
	} else if encoding == "base64" {
		if payload, err = base64.StdEncoding.DecodeString(string(payload)); err != nil {
			return nil, tool.ConfigErrorf("data is not base64: %v", err)
		}
	}
	description, err := o.f.String("description")
	if err != nil {
		return nil, err
	}
	info, err := store.Put(ctx, jetstream.ObjectMeta{Name: name, Description: description}, bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	return object{"status": "success", "bucket": bucket, "name": name, "size": info.Size}, nil
}

func objectDelete(ctx context.Context, o *operation) (any, error) {
	store, bucket, name, err := o.named(ctx)
	if err == nil {
		err = store.Delete(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	return object{"status": "success", "bucket": bucket, "name": name}, nil
}

func objectInfo(ctx context.Context, o *operation) (any, error) {
	store, bucket, name, err := o.named(ctx)
	if err != nil {
		return nil, err
	}
	info, err := store.GetInfo(ctx, name)
	if err != nil {
		return nil, err
	}
	out := about(info)
	out["status"], out["bucket"] = "success", bucket
	return out, nil
}

func about(i *jetstream.ObjectInfo) object {
	return object{"name": i.Name, "size": i.Size, "description": i.Description, "chunks": i.Chunks}
}

func objectList(ctx context.Context, o *operation) (any, error) {
	store, bucket, err := o.objects(ctx)
	if err != nil {
		return nil, err
	}
	infos, err := store.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, err
	}
	list := make([]object, len(infos))
	for i, info := range infos {
		list[i] = about(info)
	}
	return object{"status": "success", "bucket": bucket, "objects": list, "count": len(list)}, nil
}

// payload is what to send: text as it is, anything else as JSON.
func (o *operation) payload(names ...string) ([]byte, error) {
	name, v, ok := o.f.First(names...)
	if !ok {
		return nil, tool.ConfigErrorf("%s is missing", names[0])
	}
	if text, isText := v.(string); isText {
		return []byte(text), nil
	}
	return o.call.Encoded(name)
}

// value is what was received: JSON as a value, anything else as text.
func value(raw []byte) any {
	if json.Valid(raw) {
		return json.RawMessage(raw)
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

func publish(ctx context.Context, o *operation) (any, error) {
	subject, err := o.word("subject")
	if err != nil {
		return nil, err
	}
	payload, err := o.payload("data", "value")
	if err != nil {
		return nil, err
	}
	headers, err := o.f.Texts("headers")
	if err != nil {
		return nil, err
	}
	msg := &nats.Msg{Subject: subject, Data: payload, Header: nats.Header{}}
	for _, k := range tool.SortedKeys(headers) {
		msg.Header.Set(k, headers[k])
	}
	ack, err := o.js.PublishMsg(ctx, msg)
	if err != nil {
		return nil, err
	}
	return object{"status": "success", "subject": subject, "stream": ack.Stream, "seq": ack.Sequence, "duplicate": ack.Duplicate}, nil
}

const (
	maxBatch = 1000
	maxWait  = 5000 // milliseconds
)

// consume reads what waits for a durable consumer. Messages are acknowledged
// once all of them were read.
func consume(ctx context.Context, o *operation) (any, error) {
	stream, err := o.word("stream")
	if err != nil {
		return nil, err
	}
	name, err := o.word("consumer")
	if err != nil {
		return nil, err
	}
	batch, err := o.count("batch", 100, maxBatch)
	if err != nil {
		return nil, err
	}
	wait, err := o.count("timeout_ms", 1000, maxWait)
	if err != nil {
		return nil, err
	}
	ack, err := o.f.Bool(true, "ack")
	if err != nil {
		return nil, err
	}
	consumer, err := o.js.Consumer(ctx, stream, name)
	if err != nil {
		return nil, err
	}
	got, err := consumer.Fetch(batch, jetstream.FetchMaxWait(time.Duration(wait)*time.Millisecond))
	if err != nil {
		return nil, err
	}
	var received []jetstream.Msg
	list := []object{}
	for m := range got.Messages() {
		received = append(received, m)
		list = append(list, describe(m))
	}
	if err := got.Error(); err != nil && len(list) == 0 && !errors.Is(err, nats.ErrTimeout) {
		return nil, err
	}
	acked := 0
	for _, m := range received {
		if ack {
			if err := m.Ack(); err != nil {
				return nil, err
			}
			acked++
		}
	}
	return object{"status": "success", "stream": stream, "consumer": name, "count": len(list), "messages": list, "acked": acked}, ctx.Err()
}

func describe(m jetstream.Msg) object {
	out := object{"subject": m.Subject(), "data": value(m.Data()), "headers": headersOf(m.Headers())}
	if meta, err := m.Metadata(); err == nil {
		out["stream_seq"], out["consumer_seq"] = meta.Sequence.Stream, meta.Sequence.Consumer
		out["delivered"], out["pending"] = meta.NumDelivered, meta.NumPending
	}
	return out
}

func headersOf(h nats.Header) object {
	out := object{}
	for k, v := range h {
		if len(v) == 1 {
			out[k] = v[0]
		} else {
			out[k] = v
		}
	}
	return out
}

func message(ctx context.Context, o *operation) (any, error) {
	name, err := o.word("stream")
	if err != nil {
		return nil, err
	}
	stream, err := o.js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	last, err := o.f.Bool(false, "last")
	if err != nil {
		return nil, err
	}
	subject, err := o.f.String("subject")
	if err != nil {
		return nil, err
	}
	var m *jetstream.RawStreamMsg
	switch {
	case subject != "":
		m, err = stream.GetLastMsgForSubject(ctx, subject)
	case last:
		m, err = stream.GetMsg(ctx, stream.CachedInfo().State.LastSeq)
	default:
		var seq int
		if seq, err = o.count("seq", 0, 1<<62); err == nil && seq == 0 {
			err = tool.ConfigErrorf("seq is missing; or write last: true, or a subject")
		}
		if err == nil {
			m, err = stream.GetMsg(ctx, uint64(seq))
		}
	}
	if err != nil {
		return nil, err
	}
	return object{"status": "success", "stream": name, "subject": m.Subject, "seq": m.Sequence, "data": value(m.Data), "headers": headersOf(m.Header)}, nil
}

func streamInfo(ctx context.Context, o *operation) (any, error) {
	name, err := o.word("stream")
	if err != nil {
		return nil, err
	}
	stream, err := o.js.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	c, s := info.Config, info.State
	return object{
		"status": "success",
		"config": object{"name": c.Name, "subjects": c.Subjects, "max_msgs": c.MaxMsgs, "max_bytes": c.MaxBytes},
		"state":  object{"messages": s.Msgs, "bytes": s.Bytes, "first_seq": s.FirstSeq, "last_seq": s.LastSeq, "consumer_count": s.Consumers},
	}, nil
}
