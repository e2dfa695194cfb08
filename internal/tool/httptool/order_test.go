package httptool_test

import (
	"encoding/json"
	"testing"

	"github.com/noetl/noetl-go/internal/tool/httptool"
)

func TestJSONBodiesKeepTheAuthorsOrder(t *testing.T) {
	t.Parallel()
	srv := echo(t)
	body := map[string]any{"a": int64(1), "z": int64(2)}
	for _, tc := range []struct{ field, ordered string }{
		{"json", `{"z":2,"a":1}`},
		{"body", `{"z":2,"a":1}`},
		{"payload", `{"z":2,"a":1}`},
		{"data", `{"query":{"q":1},"body":{"z":2,"a":1}}`},
	} {
		t.Run(tc.field, func(t *testing.T) {
			t.Parallel()
			call := callOf(map[string]any{"url": srv.URL, "method": "POST", tc.field: body})
			if tc.field == "data" {
				call.Config["data"] = map[string]any{"query": map[string]any{"q": int64(1)}, "body": body}
			}
			call.Ordered = func(field string) (json.RawMessage, error) {
				if field != tc.field {
					t.Errorf("field %s is asked for", field)
				}
				return json.RawMessage(tc.ordered), nil
			}
			res, err := newTool(t, httptool.Options{}).Run(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Data seen }
			if err := json.Unmarshal(res.Data, &got); err != nil {
				t.Fatal(err)
			}
			if got.Data.Body != `{"z":2,"a":1}` {
				t.Errorf("the body is %s", got.Data.Body)
			}
		})
	}
}
