package wait

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

func TestConformance(t *testing.T) {
	tooltest.Run(t, tooltest.Suite{
		Open: func(*testing.T) (tool.Tool, func()) { return New(), func() {} },
		Quick: func() *tool.Call {
			return &tool.Call{Config: map[string]any{"duration": int64(0)}, Log: io.Discard}
		},
		Broken: func() *tool.Call { return &tool.Call{Config: map[string]any{"duration": "soon"}, Log: io.Discard} },
	})
}

var noon = time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)

func run(t *testing.T, config map[string]any) (*tool.Result, error) {
	t.Helper()
	return Tool{func() time.Time { return noon }}.Run(t.Context(), &tool.Call{Config: config, Log: io.Discard})
}

func TestAWaitSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	approval := `{"additionalProperties":false,"properties":{"approved":{"title":"Approve","type":"boolean"},"comment":{"title":"Comment","type":"string"}},"required":["approved"],"type":"object"}`
	for name, tc := range map[string]struct {
		config map[string]any
		want   string
	}{
		"a duration":         {map[string]any{"duration": "90s"}, `{"delay_seconds":90,"elapsed":{"data":{"status":"elapsed","waited_seconds":90}}}`},
		"seconds":            {map[string]any{"for": 1.5}, `{"delay_seconds":1.5,"elapsed":{"data":{"status":"elapsed","waited_seconds":1.5}}}`},
		"a time":             {map[string]any{"until": "2030-01-31T13:00:00+00:30"}, `{"delay_seconds":1800,"elapsed":{"data":{"status":"elapsed","waited_seconds":1800}}}`},
		"seconds since 1970": {map[string]any{"until": noon.Unix() + 5}, `{"delay_seconds":5,"elapsed":{"data":{"status":"elapsed","waited_seconds":5}}}`},
		"a signal":           {map[string]any{"signal": "go", "message": "Now?"}, `{"signal":{"name":"go","message":"Now?"}}`},
		"a form":             {map[string]any{"signal": "go", "form": map[string]any{"n": "int"}}, `{"signal":{"name":"go","form":{"additionalProperties":false,"properties":{"n":{"type":"integer"}},"type":"object"}}}`},
		"an approval":        {map[string]any{"approval": true}, `{"signal":{"name":"approval","form":` + approval + `,"approve":"fail"}}`},
		"an approval with time": {
			map[string]any{"approval": "yes", "signal": "ship", "on_reject": "Continue", "timeout": "2h", "on_timeout": "continue"},
			`{"delay_seconds":7200,"elapsed":{"data":{"status":"timeout","signal":"ship","waited_seconds":7200}},"signal":{"name":"ship","form":` + approval + `,"approve":"continue"}}`,
		},
		"a signal that must come": {
			map[string]any{"signal": "go", "timeout": 60}, `{"delay_seconds":60,"elapsed":{"error":{"kind":"timeout","code":"TIMEOUT","message":"nobody sent the signal go within 1m0s","retryable":false}},"signal":{"name":"go"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := run(t, tc.config)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := tool.Encode(res.Park)
			if string(got) != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestWhatHasPassedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, config := range []map[string]any{{"until": "2030-01-31"}, {"until": noon.Unix()}, {"duration": 0}} {
		res, err := run(t, config)
		if err != nil || res.Park != nil || string(res.Data) != `{"status":"elapsed","waited_seconds":0}` {
			t.Errorf("%v: %+v, %v", config, res, err)
		}
	}
}

func TestAWaitThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]map[string]any{
		"needs duration, until, signal or approval": {"signal": " "},
		"one of duration, until and signal":         {"signal": "go", "duration": 3},
		"timeout belongs to a signal":               {"duration": 3, "timeout": 5},
		"is not a time":                             {"until": "tomorrow"},
		"longer than ten years":                     {"until": "2099-01-01"},
		"on_reject must be fail or continue":        {"approval": true, "on_reject": "shrug"},
		"form: field a: there is no type":           {"signal": "go", "form": map[string]any{"a": "colour"}},
		"form must be a map":                        {"signal": "go", "form": "x"},
		"at most 200":                               {"signal": strings.Repeat("x", 300)},
	} {
		if _, err := run(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q", config, err, want)
		}
	}
}
