package artifact

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	partBytes = 32 << 20 // of a part that is held
	anyNumber = math.MaxInt64
)

// extent is a part of a result: from a row or byte on, so many.
type extent struct{ offset, limit int64 }

// rowSpan and byteSpan read which part is asked for; false when none is.
func rowSpan(call *tool.Call) (extent, bool, error) {
	f := call.Fields()
	_, offset, _ := f.First("offset")
	_, limit, _ := f.First("limit")
	return span(call, "offset", offset, "limit", limit)
}

func byteSpan(call *tool.Call) (extent, bool, error) {
	f := call.Fields()
	_, offset, _ := f.First("byte_offset")
	_, limit, _ := f.First("byte_limit")
	return span(call, "byte_offset", offset, "byte_limit", limit)
}

// span reads the two numbers of a part, which may stand in the input, too.
func span(call *tool.Call, fromName string, from any, mostName string, most any) (extent, bool, error) {
	e, given := extent{0, anyNumber}, false
	for _, x := range []struct {
		name  string
		value any
		to    *int64
	}{{fromName, from, &e.offset}, {mostName, most, &e.limit}} {
		if raw, there := call.Args[x.name].(json.RawMessage); there && json.Unmarshal(raw, &x.value) != nil {
			return e, false, tool.ConfigErrorf("input.%s: want a number", x.name)
		}
		if x.value == nil {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(x.value)), 64)
		if err != nil || n < 0 || n != math.Trunc(n) || n > 1<<52 {
			return e, false, tool.ConfigErrorf("%s: want a number from 0 on, got %v", x.name, x.value)
		}
		*x.to, given = int64(n), true
	}
	if given && e.limit == 0 {
		return e, false, tool.ConfigErrorf("%s: want at least 1", mostName)
	}
	return e, given, nil
}

// bytes gives a part of a result of any kind, as text when it is text.
func (t *Tool) bytes(ctx context.Context, call *tool.Call, ref string, e extent) (*tool.Result, error) {
	if e.limit != anyNumber && e.limit > partBytes {
		return nil, tool.ConfigErrorf("byte_limit: at most %d bytes can be read at once", int64(partBytes))
	}
	body, err := t.open(ctx, call, ref, e.offset, min(e.limit, partBytes+1))
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	data, err := io.ReadAll(io.LimitReader(body, partBytes+1))
	if err != nil {
		return nil, failure(ref, err)
	}
	if len(data) > partBytes {
		return nil, tooMuch("bytes", "byte_limit")
	}
	out := struct {
		Data     string `json:"data"`
		Encoding string `json:"encoding"`
		Offset   int64  `json:"offset"`
		Bytes    int    `json:"bytes"`
	}{string(data), "utf-8", e.offset, len(data)}
	if !utf8.Valid(data) {
		out.Data, out.Encoding = base64.StdEncoding.EncodeToString(data), "base64"
	}
	encoded, err := tool.Encode(out)
	return &tool.Result{Data: encoded}, err
}

func tooMuch(what, field string) error {
	return &tool.Error{
		Kind: tool.KindResourceLimit, Code: "RESULT_TOO_LARGE",
		Message: fmt.Sprintf("the %s asked for have more than %d bytes; ask for fewer with %s", what, int64(partBytes), field),
	}
}

// rows gives some of the rows of a result, without holding the others.
func (t *Tool) rows(ctx context.Context, call *tool.Call, ref string, e extent) (*tool.Result, error) {
	body, err := t.open(ctx, call, ref, 0, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	dec := json.NewDecoder(body)
	if err := findRows(dec); err != nil {
		return nil, unreadable(ref, err)
	}
	var out bytes.Buffer
	out.WriteString(`{"rows":[`)
	count, more := int64(0), false
	for i := int64(0); dec.More(); i++ {
		if count == e.limit {
			more = true
			break
		}
		var row json.RawMessage
		if err := dec.Decode(&row); err != nil {
			return nil, unreadable(ref, err)
		}
		if i < e.offset {
			continue
		}
		if count > 0 {
			out.WriteByte(',')
		}
		if count++; out.Len()+len(row) > partBytes {
			return nil, tooMuch("rows", "limit")
		}
		out.Write(row)
	}
	if !more {
		if _, err := dec.Token(); err != nil { // the end of the list
			return nil, unreadable(ref, err)
		}
	}
	fmt.Fprintf(&out, `],"offset":%d,"count":%d,"more":%t}`, e.offset, count, more)
	return &tool.Result{Data: out.Bytes()}, nil
}

var errNoRows = errors.New("it is neither a list nor an object with rows")

// findRows goes to the first row: of the list itself, or of the list under the
// key rows, which may be below data.
func findRows(dec *json.Decoder) error {
	for {
		switch at, err := dec.Token(); {
		case err != nil:
			return err
		case at == json.Delim('['):
			return nil
		case at != json.Delim('{'):
			return errNoRows
		}
		found := false
		for dec.More() && !found {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			if found = key == "rows" || key == "data"; found {
				break
			}
			if err := skip(dec); err != nil {
				return err
			}
		}
		if !found {
			return errNoRows
		}
	}
}

// skip passes over a value without holding it.
func skip(dec *json.Decoder) error {
	for depth := 0; ; {
		at, err := dec.Token()
		if err != nil {
			return err
		}
		switch at {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

func unreadable(ref string, err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, errNoRows), isSyntax:
		if isSyntax {
			err = fmt.Errorf("it is no JSON: %w", syntax)
		}
		return &tool.Error{
			Kind: tool.KindSchema, Code: "NO_ROWS",
			Message: "the result " + ref + " has no rows to read: " + err.Error() + "; leave out offset and limit, or read bytes of it with byte_offset and byte_limit",
		}
	}
	return failure(ref, err)
}

// putting puts data aside.
func putting(call *tool.Call) (action, error) {
	f := call.Fields()
	name, err := f.String("name")
	if err != nil {
		return nil, err
	}
	media, err := f.String("media_type", "content_type")
	if err != nil {
		return nil, err
	}
	data, given := call.Args["data"].(json.RawMessage)
	if _, _, there := f.First("data"); there && !given {
		if data, err = call.Encoded("data"); err != nil {
			return nil, err
		}
		given = true
	}
	switch {
	case !given:
		return nil, tool.ConfigErrorf("action put needs data")
	case call.Blobs == nil:
		return nil, tool.ConfigErrorf("action put is not available: this worker has no place for data")
	}
	if media = strings.TrimSpace(media); media != "" && !strings.HasPrefix(media, "application/json") {
		var text string
		if json.Unmarshal(data, &text) == nil {
			data = json.RawMessage(text)
		}
	}
	return func(ctx context.Context) (*tool.Result, error) {
		return put(ctx, call, tool.Blob{Name: name, MediaType: media}, data)
	}, nil
}

func put(ctx context.Context, call *tool.Call, about tool.Blob, data []byte) (*tool.Result, error) {
	kept, err := call.Blobs.Put(ctx, about, bytes.NewReader(data))
	if err != nil {
		if e, ok := errors.AsType[*tool.Error](err); ok {
			return nil, e
		}
		return nil, &tool.Error{Kind: tool.KindStorageAccess, Code: "RESULT_NOT_STORED", Retryable: true, Message: "the data could not be stored: " + err.Error()}
	}
	media := kept.MediaType
	if media == "" {
		media = "application/json"
	}
	out, err := tool.Encode(map[string]any{
		"ref": kept.Ref, "_ref": kept.Ref, "uri": kept.Ref, "store": kept.Store, "scope": kept.Scope,
		"size_bytes": kept.Bytes, "sha256": kept.SHA256, "media_type": media,
	})
	return &tool.Result{Data: out}, err
}
