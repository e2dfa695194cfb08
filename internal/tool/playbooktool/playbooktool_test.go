package playbooktool_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/playbooktool"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

func call(config, args map[string]any) *tool.Call {
	return &tool.Call{Config: config, Args: args, Log: io.Discard}
}

func TestConformance(t *testing.T) {
	tooltest.Run(t, tooltest.Suite{
		Open:   func(*testing.T) (tool.Tool, func()) { return playbooktool.New(), func() {} },
		Quick:  func() *tool.Call { return call(map[string]any{"path": "a/b"}, nil) },
		Broken: func() *tool.Call { return call(nil, nil) },
	})
}

func TestTheConfigBecomesARequest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config, args map[string]any
		want         event.ChildRequest
	}{
		"started and not waited for": {
			map[string]any{"path": "a/b"},
			nil,
			event.ChildRequest{Path: "a/b", Payload: json.RawMessage(`{}`)},
		},
		"by number, in a version of its own": {
			map[string]any{"catalog_id": "42", "version": int64(3), "pool": "heavy"},
			nil,
			event.ChildRequest{CatalogID: 42, Version: 3, Pool: "heavy", Payload: json.RawMessage(`{}`)},
		},
		"return_step waits": {
			map[string]any{"path": "p", "return_step": "end", "timeout": "2m", "poll_interval": int64(5)},
			nil,
			event.ChildRequest{Path: "p", Wait: true, ReturnStep: "end", Timeout: 120, Payload: json.RawMessage(`{}`)},
		},
		"return_result waits": {
			map[string]any{"path": "p", "return_result": true, "result_step": "sum", "version": "latest"},
			nil,
			event.ChildRequest{Path: "p", Wait: true, ReturnResult: true, ResultStep: "sum", Payload: json.RawMessage(`{}`)},
		},
		"wait waits": {
			map[string]any{"path": "p", "wait": "yes"},
			nil,
			event.ChildRequest{Path: "p", Wait: true, Payload: json.RawMessage(`{}`)},
		},
		"input wins over payload": {
			map[string]any{"path": "p", "payload": map[string]any{"x": int64(1)}},
			map[string]any{"b": json.RawMessage(`2`), "a": json.RawMessage(`"<"`)},
			event.ChildRequest{Path: "p", Payload: json.RawMessage(`{"a":"<","b":2}`)},
		},
		"payload when there is no input": {
			map[string]any{"path": "p", "payload": map[string]any{"x": int64(1)}},
			map[string]any{},
			event.ChildRequest{Path: "p", Payload: json.RawMessage(`{"x":1}`)},
		},
		"the older word with": {
			map[string]any{"path": "p", "with": map[string]any{"x": int64(1)}},
			nil,
			event.ChildRequest{Path: "p", Payload: json.RawMessage(`{"x":1}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := playbooktool.New().Run(t.Context(), call(tc.config, tc.args))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&event.Park{Child: &tc.want}, res.Park); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAWrongConfigSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]map[string]any{
		"needs a path or a catalog_id":       {"path": " "},
		`catalog_id "x" is not a number`:     {"catalog_id": "x"},
		`version "soon" is neither a number`: {"path": "p", "version": "soon"},
		"wait must be true or false":         {"path": "p", "wait": "maybe"},
		"wait is false, but":                 {"path": "p", "wait": false, "return_step": "x"},
		"timeout: ":                          {"path": "p", "timeout": "later"},
		"payload must be a map":              {"path": "p", "payload": "x"},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, err := playbooktool.New().Run(t.Context(), call(config, nil))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want one with %q", err, want)
			}
		})
	}
}
