package artifact_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/artifact"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// shelf holds results by reference; "slow" is never found in time.
type shelf map[string]string

func (s shelf) Result(ctx context.Context, ref string) (json.RawMessage, error) {
	switch ref {
	case "slow":
		<-ctx.Done()
		return nil, ctx.Err()
	case "offline":
		return nil, errors.New("connection refused")
	}
	if data, ok := s[ref]; ok {
		return json.RawMessage(data), nil
	}
	return nil, event.Errorf(event.NotFound, "no result %s", ref)
}

func call(config map[string]any, args map[string]any) *tool.Call {
	return &tool.Call{Config: config, Args: args, Log: io.Discard}
}

func TestConformance(t *testing.T) {
	tooltest.Run(t, tooltest.Suite{
		Open:   func(*testing.T) (tool.Tool, func()) { return artifact.New(shelf{"r": `1`}), func() {} },
		Quick:  func() *tool.Call { return call(map[string]any{"ref": "r"}, nil) },
		Broken: func() *tool.Call { return call(map[string]any{"action": "put"}, nil) },
		Slow: func(*testing.T) (*tool.Call, <-chan struct{}) {
			begun := make(chan struct{})
			close(begun)
			return call(map[string]any{"ref": "slow"}, nil), begun
		},
	})
}

func TestTheReferenceIsFoundInTheInputOrTheConfig(t *testing.T) {
	t.Parallel()
	from := shelf{"noetl://a": `{"n":1}`, "noetl://b": `[2]`}
	for name, tc := range map[string]struct {
		config, args map[string]any
		want         string
	}{
		"input":               {map[string]any{"action": "get"}, map[string]any{"result_ref": json.RawMessage(`"noetl://a"`)}, `{"n":1}`},
		"config":              {map[string]any{"result_ref": "noetl://b"}, nil, `[2]`},
		"the shorter word":    {map[string]any{"ref": " noetl://b "}, nil, `[2]`},
		"the input wins":      {map[string]any{"ref": "noetl://b"}, map[string]any{"ref": json.RawMessage(`"noetl://a"`)}, `{"n":1}`},
		"a null input is not": {map[string]any{"ref": "noetl://b"}, map[string]any{"result_ref": json.RawMessage(`null`)}, `[2]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, tl := range []tool.Tool{artifact.New(from), artifact.NewFetch(from)} {
				res, err := tl.Run(t.Context(), call(tc.config, tc.args))
				if err != nil || string(res.Data) != tc.want {
					t.Errorf("%s gives %+v, %v; want %s", tl.Kind(), res, err, tc.want)
				}
			}
		})
	}
}

func TestFailuresSayWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args      map[string]any
		kind      string
		retryable bool
		message   string
	}{
		"no reference":       {nil, tool.KindConfig, false, "artifact needs result_ref"},
		"not a reference":    {map[string]any{"result_ref": json.RawMessage(`[1]`)}, tool.KindConfig, false, "input.result_ref must be text"},
		"nothing there":      {map[string]any{"result_ref": json.RawMessage(`"gone"`)}, tool.KindNotFound, false, "the result gone is not available"},
		"nobody to be asked": {map[string]any{"result_ref": json.RawMessage(`"offline"`)}, tool.KindConnection, true, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := artifact.New(shelf{}).Run(t.Context(), call(nil, tc.args))
			e, ok := errors.AsType[*tool.Error](err)
			if !ok || e.Kind != tc.kind || e.Retryable != tc.retryable || !strings.Contains(e.Message, tc.message) {
				t.Errorf("error is %#v", err)
			}
		})
	}
}
