package schema

import "slices"

// Kinds that talk to services.

var http = &Kind{
	Name: "http", Doc: "Makes one HTTP request. An answer outside 200–299 is an error.",
	Returns: "`{status_code, headers, data, body, url, elapsed}`; `data` is the parsed body",
	Fields: []Field{
		{Name: "url", Aliases: []string{"endpoint"}, Shape: Text, Doc: "Where to."},
		{Name: "method", Shape: Text, Words: []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}, Default: "GET", Doc: "The verb."},
		{Name: "headers", Shape: Map, Doc: "Headers; numbers and the like are written out, nulls left out."},
		{Name: "params", Shape: Map, Doc: "Query parameters; a list repeats its name."},
		{Name: "json", Shape: Any, Doc: "Body, sent as JSON."},
		{Name: "form", Shape: Text | Map, Doc: "Body, sent as a form."},
		{Name: "body_ref", Shape: Text | Map, Doc: "Body: stored data, by its reference or as a download described it. It is streamed."},
		{Name: "body", Aliases: []string{"payload"}, Shape: Any, Doc: "Body: text as it is, anything else as the Content-Type asks, JSON by default."},
		{Name: "data", Shape: Any, Doc: "`{query, body}`; or a map that is the query of GET, HEAD and DELETE and the body of others."},
		{Name: "auth", Aliases: []string{"credential"}, Shape: Text | Map, Doc: "A credential: its name, or `{type: …}` with type bearer, basic, api_key, header, oauth2, gcp or gcp_adc."},
		{Name: "verify_ssl", Aliases: []string{"verify"}, Shape: Flag, Default: "true", Doc: "Check the server's certificate."},
		{Name: "follow_redirects", Shape: Flag, Default: "true", Doc: "Follow up to ten redirects."},
		{Name: "response_type", Shape: Text, Words: []string{"json", "text", "binary"}, Default: "json", Doc: "How to read the answer."},
		{Name: "download", Shape: Flag, Default: "false", Doc: "Store the body as it is; `data` then is `{_ref, bytes, media_type, sha256}`."},
		{Name: "max_response_bytes", Shape: Number, Default: "33554432", Doc: "Largest answer held in memory; larger ones are stored."},
	},
	Needs: []Need{{"url"}},
}

var nats = &Kind{
	Name: "nats", Doc: "One operation on NATS: key-value bucket, object store or stream.",
	Returns: "by operation, with `status`",
	Fields: []Field{
		{Name: "operation", Shape: Text, Words: []string{
			"kv_get", "kv_put", "kv_delete", "kv_purge", "kv_keys", "object_get", "object_put", "object_delete", "object_list",
			"object_info", "js_publish", "js_consume", "js_get_msg", "js_stream_info",
		}, Doc: "What to do."},
		{Name: "auth", Aliases: []string{"credential"}, Shape: Text | Map, Doc: "The credential, with the server's address."},
		{Name: "url", Shape: Text, Doc: "The server, when no credential names it."},
		{Name: "user", Shape: Text, Doc: "Name to log in with."},
		{Name: "password", Shape: Text, Doc: "Password, or the name of a secret."},
		{Name: "token", Shape: Text, Doc: "Token, or the name of a secret."},
		{Name: "bucket", Shape: Text, Doc: "Bucket of keys or objects."},
		{Name: "key", Shape: Text, Doc: "Key in the bucket."},
		{Name: "value", Shape: Any, Doc: "Value to put; anything but text as JSON."},
		{Name: "ttl", Shape: Duration, Doc: "How long the value lives."},
		{Name: "pattern", Shape: Text, Doc: "Which keys to list, with `*`."},
		{Name: "object", Aliases: []string{"object_name"}, Shape: Text, Doc: "Name of the object; `key` says the same."},
		{Name: "encoding", Shape: Text, Words: []string{"utf-8", "base64"}, Default: "utf-8", Doc: "How an object's bytes become text."},
		{Name: "data", Shape: Any, Doc: "What to put or publish."},
		{Name: "description", Shape: Text, Doc: "Remark kept with an object."},
		{Name: "create", Shape: Flag, Default: "false", Doc: "Make the bucket when it is missing."},
		{Name: "subject", Shape: Text, Doc: "Subject to publish to or read from."},
		{Name: "headers", Shape: Map, Doc: "Headers of a message."},
		{Name: "stream", Shape: Text, Doc: "Stream to read."},
		{Name: "consumer", Shape: Text, Doc: "Durable consumer to read with."},
		{Name: "batch", Shape: Number, Default: "100", Doc: "Messages to read at most."},
		{Name: "timeout_ms", Shape: Number, Default: "1000", Doc: "How long to wait for them."},
		{Name: "ack", Shape: Flag, Default: "true", Doc: "Acknowledge what was read."},
		{Name: "seq", Shape: Number, Doc: "Which message to get."},
		{Name: "last", Shape: Flag, Doc: "Get the last one."},
	},
	Needs: []Need{{"operation"}},
}

var subscription = &Kind{
	Name: "subscription", Doc: "Polls a message source once, or settles messages polled before.",
	Returns: "`{status, source, operation, count, messages, acked, ack_ids}`",
	Fields: []Field{
		{Name: "source", Shape: Text, Words: []string{"nats", "pubsub", "kafka"}, Doc: "What kind of source."},
		{Name: "operation", Shape: Text, Words: []string{"poll", "ack", "nack", "nak", "term"}, Default: "poll", Doc: "What to do."},
		{Name: "auth", Shape: Text | Map, Doc: "The credential."},
		{Name: "batch", Shape: Number, Default: "100", Doc: "Messages at most."},
		{Name: "timeout_ms", Shape: Number, Default: "1000", Doc: "How long to wait for them."},
		{Name: "ack", Shape: Text, Words: []string{"on_success", "auto", "manual", "defer", "none", "true", "false"}, Default: "on_success", Doc: "When to acknowledge."},
		{Name: "ack_ids", Shape: List, Doc: "Which messages to settle."},
		{Name: "nack_delay_ms", Shape: Number, Doc: "When a refused message comes again."},
		{Name: "url", Shape: Text, Doc: "NATS server."},
		{Name: "user", Shape: Text, Doc: "Name to log in with."},
		{Name: "password", Shape: Text, Doc: "Password, or the name of a secret."},
		{Name: "token", Shape: Text, Doc: "Token, or the name of a secret."},
		{Name: "stream", Shape: Text, Doc: "NATS stream."},
		{Name: "consumer", Shape: Text, Doc: "NATS consumer."},
		{Name: "subscription", Shape: Text, Doc: "Pub/Sub subscription."},
		{Name: "endpoint", Shape: Text, Doc: "Pub/Sub server, for an emulator."},
		{Name: "brokers", Shape: Text | List, Doc: "Kafka brokers."},
		{Name: "topic", Shape: Text, Doc: "Kafka topic."},
		{Name: "group", Shape: Text, Doc: "Kafka consumer group."},
	},
	Needs: []Need{{"source"}},
}

var mcp = &Kind{
	Name: "mcp", Doc: "Calls a tool of a Model Context Protocol server, over HTTP or as a program started for the call.",
	Returns: "`{status, server, endpoint, method, tool, arguments, text, result, initialize}`",
	Fields: []Field{
		{Name: "endpoint", Aliases: []string{"url", "server_url", "base_url"}, Shape: Text, Doc: "The server."},
		{Name: "server", Shape: Text, Default: "kubernetes", Doc: "The server by the name the worker knows it under."},
		{Name: "command", Shape: List, Doc: "A program that is the server, with its arguments; it ends with the call."},
		{Name: "env", Shape: Map, Doc: "Environment of the program."},
		{Name: "headers", Shape: Map, Doc: "Headers of requests over HTTP."},
		{Name: "method", Aliases: []string{"action"}, Shape: Text, Words: []string{
			"tools/call", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get", "ping", "health",
		}, Default: "tools/call", Doc: "Protocol method."},
		{Name: "tool", Aliases: []string{"tool_name"}, Shape: Text, Doc: "Tool to call."},
		{Name: "arguments", Shape: Code | Map, Doc: "Its arguments: a map, or JSON; else the step's input."},
		{Name: "params", Shape: Map, Doc: "Parameters of other methods."},
		{Name: "auth", Aliases: []string{"credential"}, Shape: Text | Map, Doc: "The credential, for servers over HTTP."},
		{Name: "request_id", Shape: Text, Doc: "Number of the first request.", Unavailable: "remove it: requests are numbered by the tool"},
		{Name: "protocol_version", Shape: Text, Doc: "Version to ask for."},
		{Name: "client_name", Shape: Text, Doc: "How to introduce ourselves."},
		{Name: "client_version", Shape: Text, Doc: "Version to introduce ourselves with."},
		{Name: "capabilities", Shape: Map, Doc: "What to offer."},
	},
}

// stored are the fields of both names of the tool that reads and stores results.
// What to read may also stand in its input.
var stored = []Field{
	{Name: "action", Shape: Text, Words: []string{"get", "put"}, Default: "get", Doc: "What to do."},
	{Name: "result_ref", Aliases: []string{"ref", "uri"}, Shape: Text, Doc: "get: the reference, such as `{{ step._ref }}`; it may also stand in `input`."},
	{Name: "offset", Shape: Number, Default: "0", Doc: "get: the first row to read, of data that is a list or has `rows`."},
	{Name: "limit", Shape: Number, Doc: "get: rows to read at most."},
	{Name: "byte_offset", Shape: Number, Default: "0", Doc: "get: the first byte to read, of data of any kind."},
	{Name: "byte_limit", Shape: Number, Doc: "get: bytes to read at most."},
	{Name: "data", Shape: Any, Doc: "put: the data; it may also stand in `input`."},
	{Name: "name", Shape: Text, Doc: "put: what to call it. Default: the step."},
	{Name: "media_type", Aliases: []string{"content_type"}, Shape: Text, Default: "application/json", Doc: "put: what kind of data it is. Text that is not JSON is stored as it is."},
}

const storedReturns = "get: the stored data; with `offset` or `limit` `{rows, offset, count, more}`; with `byte_offset` or `byte_limit` `{data, encoding, offset, bytes}`. put: `{ref, _ref, uri, store, scope, size_bytes, sha256, media_type}`"

var artifact = &Kind{
	Name: "artifact", Doc: "Reads a result that was too large to travel with the event, or a part of it, or puts data aside as one.",
	Returns: storedReturns, Fields: slices.Clone(stored),
}

var resultFetch = &Kind{
	Name: "result_fetch", Doc: "The same as artifact.",
	Returns: storedReturns, Fields: slices.Clone(stored),
}
