package artifact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/artifact"
)

// depot is a place for large data; what is in it is too large to be held.
type depot struct {
	data map[string]string
	put  map[string]string
}

func (d *depot) Result(context.Context, string) (json.RawMessage, error) {
	return nil, event.Errorf(event.Limit, "too large")
}

func (d *depot) Open(_ context.Context, ref string, offset, length int64) (io.ReadCloser, error) {
	data, ok := d.data[ref]
	if !ok {
		return nil, event.Errorf(event.NotFound, "it was collected")
	}
	if data = data[offset:]; length > 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return io.NopCloser(strings.NewReader(data)), nil
}

func (d *depot) Put(_ context.Context, b tool.Blob, r io.Reader) (*tool.Stored, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	d.put[b.Name+" "+b.MediaType] = string(data)
	return &tool.Stored{StoredResult: event.StoredResult{Ref: "noetl://new", Store: "file", Scope: "execution", Bytes: int64(len(data)), SHA256: "sum", MediaType: b.MediaType}}, nil
}

func TestPartsOfAResult(t *testing.T) {
	t.Parallel()
	d := &depot{data: map[string]string{
		"list": `[1, {"a":[2]}, 9007199254740993, null]`, "rows": `{"columns":[["rows",[1]]],"rows":[{"n":1},{"n":2}],"row_count":2}`,
		"deep": `{"status":"ok","data":{"rows":[5,6]}}`, "object": `{"a":1}`, "text": "a,b\nü\n", "binary": "\xff\x00", "cut": `[1,2`,
	}}
	for name, tc := range map[string]struct {
		config, args map[string]any
		want         string
	}{
		"the first rows":      {map[string]any{"ref": "list", "limit": int64(2)}, nil, `{"rows":[1,{"a":[2]}],"offset":0,"count":2,"more":true}`},
		"the last rows":       {map[string]any{"ref": "list", "offset": "2"}, nil, `{"rows":[9007199254740993,null],"offset":2,"count":2,"more":false}`},
		"behind the end":      {map[string]any{"ref": "list", "offset": 9.0, "limit": int64(3)}, nil, `{"rows":[],"offset":9,"count":0,"more":false}`},
		"rows of an object":   {map[string]any{"uri": "rows", "offset": int64(1), "limit": int64(1)}, nil, `{"rows":[{"n":2}],"offset":1,"count":1,"more":false}`},
		"rows below data":     {map[string]any{"ref": "deep", "limit": int64(1)}, nil, `{"rows":[5],"offset":0,"count":1,"more":true}`},
		"asked for in input":  {map[string]any{"ref": "deep"}, map[string]any{"offset": json.RawMessage(`1`)}, `{"rows":[6],"offset":1,"count":1,"more":false}`},
		"bytes of text":       {map[string]any{"ref": "text", "byte_offset": int64(4), "byte_limit": int64(2)}, nil, `{"data":"ü","encoding":"utf-8","offset":4,"bytes":2}`},
		"bytes that are none": {map[string]any{"ref": "binary", "byte_offset": int64(0)}, nil, `{"data":"/wA=","encoding":"base64","offset":0,"bytes":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call(tc.config, tc.args)
			c.Blobs = d
			res, err := artifact.New(d).Run(t.Context(), c)
			if err != nil || string(bytes.TrimSpace(res.Data)) != tc.want {
				t.Errorf("%+v, %v; want %s", res, err, tc.want)
			}
		})
	}
	for name, tc := range map[string]struct {
		config map[string]any
		kind   string
		want   string
	}{
		"no rows":          {map[string]any{"ref": "object", "limit": int64(1)}, tool.KindSchema, "neither a list nor an object with rows"},
		"no JSON":          {map[string]any{"ref": "text", "limit": int64(1)}, tool.KindSchema, "byte_offset"},
		"both":             {map[string]any{"ref": "list", "limit": int64(1), "byte_limit": int64(1)}, tool.KindConfig, "rows or bytes"},
		"less than none":   {map[string]any{"ref": "list", "offset": int64(-1)}, tool.KindConfig, "offset: want a number"},
		"not a number":     {map[string]any{"ref": "list", "limit": "many"}, tool.KindConfig, "limit: want a number"},
		"no limit":         {map[string]any{"ref": "list", "limit": int64(0)}, tool.KindConfig, "limit: want at least 1"},
		"collected":        {map[string]any{"ref": "gone", "limit": int64(1)}, tool.KindNotFound, "collected"},
		"all of it":        {map[string]any{"ref": "cut", "byte_limit": int64(64 << 20)}, tool.KindConfig, "at once"},
		"it ends too soon": {map[string]any{"ref": "cut", "offset": int64(1)}, tool.KindConnection, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call(tc.config, nil)
			c.Blobs = d
			_, err := artifact.NewFetch(d).Run(t.Context(), c)
			if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tc.kind || !strings.Contains(e.Message, tc.want) {
				t.Errorf("error is %#v", err)
			}
		})
	}
}

func TestPartsWithoutAPlaceForLargeData(t *testing.T) {
	t.Parallel()
	res, err := artifact.New(shelf{"r": `[1,2,3]`}).Run(t.Context(), call(map[string]any{"ref": "r", "offset": int64(1), "limit": int64(1)}, nil))
	if err != nil || string(res.Data) != `{"rows":[2],"offset":1,"count":1,"more":true}` {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestWhatIsTooLargeToBeHeldIsCopied(t *testing.T) {
	t.Parallel()
	d := &depot{data: map[string]string{"r": `[1]`}, put: map[string]string{}}
	c := call(map[string]any{"ref": "r"}, nil)
	c.Blobs = d
	res, err := artifact.New(d).Run(t.Context(), c)
	if err != nil || res.Stored == nil || res.Stored.Ref != "noetl://new" || d.put[" "] != `[1]` {
		t.Errorf("%+v, %v, %v", res, err, d.put)
	}
	c.Blobs = nil
	_, err = artifact.New(d).Run(t.Context(), c)
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindResourceLimit {
		t.Errorf("without a place: %v", err)
	}
}

func TestDataIsPutAside(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, args map[string]any
		at, want     string
	}{
		"data of the config": {map[string]any{"data": map[string]any{"n": int64(1)}}, nil, " ", `{"n":1}`},
		"data of the input":  {map[string]any{"data": int64(2), "name": "x"}, map[string]any{"data": json.RawMessage(`[1,2]`)}, "x ", `[1,2]`},
		"text as it is":      {map[string]any{"data": "a,b\n", "media_type": "text/csv"}, nil, " text/csv", "a,b\n"},
		"text within JSON":   {map[string]any{"data": "a"}, nil, " ", `"a"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &depot{put: map[string]string{}}
			tc.config["action"] = "put"
			c := call(tc.config, tc.args)
			c.Blobs = d
			res, err := artifact.New(d).Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSuffix(d.put[tc.at], "\n"); got != strings.TrimSuffix(tc.want, "\n") || !strings.Contains(string(res.Data), `"_ref":"noetl://new"`) {
				t.Errorf("stored %q, answer %s", d.put, res.Data)
			}
		})
	}
	_, err := artifact.New(&depot{}).Run(t.Context(), call(map[string]any{"action": "put", "data": "x"}, nil))
	if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindConfig {
		t.Errorf("without a place: %v", err)
	}
}
