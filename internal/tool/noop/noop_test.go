package noop_test

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/noop"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

func TestConformance(t *testing.T) {
	tooltest.Run(t, tooltest.Suite{
		Open:   func(*testing.T) (tool.Tool, func()) { return noop.New(), func() {} },
		Quick:  func() *tool.Call { return &tool.Call{Log: io.Discard} },
		Broken: func() *tool.Call { return &tool.Call{Config: map[string]any{"message": []any{}}, Log: io.Discard} },
	})
}

func TestNoopAnswersWithItsConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config map[string]any
		want   string
	}{
		"without fields":               {nil, `{"status":"ok","message":"noop"}`},
		"a message is repeated":        {map[string]any{"message": "a < b"}, `{"status":"ok","message":"a < b"}`},
		"a result is the data":         {map[string]any{"message": "x", "result": []any{int64(1 << 60)}}, `[1152921504606846976]`},
		"a null result stays null":     {map[string]any{"result": nil}, `null`},
		"a number as message is text":  {map[string]any{"message": int64(3)}, `{"status":"ok","message":"3"}`},
		"a false result is not absent": {map[string]any{"result": false}, `false`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := noop.New().Run(t.Context(), &tool.Call{Config: tc.config, Log: io.Discard})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(res.Data)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
