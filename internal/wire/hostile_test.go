package wire

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/testkit"
)

// TestOddNamesAreAnsweredNotBrokenBy sends names that databases, paths and
// templates stumble over to every route that takes one.
func TestOddNamesAreAnsweredNotBrokenBy(t *testing.T) {
	t.Parallel()
	t.Run("file", func(t *testing.T) { t.Parallel(); oddNames(t, newWorld(t)) })
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		dsn := testkit.Postgres(t)
		oddNames(t, newWorld(t, setting{store: func(t *testing.T) store.Store {
			s, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}}))
	})
}

func oddNames(t *testing.T, w *world) {
	catalog := w.register(oneStep).text("catalog_id")
	id := w.again("demo/one", "")
	command := w.command(id, "start")
	w.claim(command, "w").ok()
	w.enlist("w")
	names := []string{
		"a%00b", "%ff%fe", "a%0Ab", "%20", "..%2F..%2Fetc", "%7B%7B%207*7%20%7D%7D", "%27%3B%20DROP%20TABLE%20x--", "%F0%9F%94%91", "-1",
		"99999999999999999999", strings.Repeat("n", 5000), "%2525",
	}
	values := []string{
		`a\u0000b`, `\ud800`, "a\\nb", ` `, `../../etc`, `{{ 7*7 }}`, `'; DROP TABLE x--`, `🔑`, `-1`, `99999999999999999999`, strings.Repeat("n", 5000), `%25`,
	}
	for i, name := range names {
		value := values[i]
		for _, c := range []struct{ ask, body string }{
			{"POST /api/credentials", `{"name":"$v","type":"secret","data":{"value":"$v"},"description":"$v","tags":["$v"],"meta":{"$v":"$v"}}`},
			{"POST /api/credentials", `{"name":"fine","type":"$v","data":{"value":"x"}}`},
			{"GET /api/credentials/$n", ""},
			{"GET /api/credentials/$n?include_data=true", ""},
			{"GET /api/credentials/$n/check", ""},
			{"GET /api/credentials?type=$n&q=$n", ""},
			{"GET /api/credentials/$n/sealed?worker_id=$n&execution_id=$x", ""},
			{"GET /api/credentials/$n/sealed?worker_id=w&execution_id=$x", ""},
			{"POST /api/secrets/resolve", `{"execution_id":"$x","event_id":"$e","worker_id":"w","attempt":1,"aliases":["$v"]}`},
			{"POST /api/secrets/resolve", `{"execution_id":"$x","event_id":"$e","worker_id":"$v","attempt":-1,"aliases":["$v","$v"]}`},
			{"POST /api/keychain/$c/$n", `{"data":{"a":"$v"},"credential_type":"$v"}`},
			{"POST /api/keychain/$c/x", `{"data":"$v","scope_type":"$v","renew_config":{"endpoint":"$v"},"auto_renew":true}`},
			{"GET /api/keychain/$c/$n?scope_type=local&execution_id=$x", ""},
			{"GET /api/keychain/$c/$n", ""},
			{"GET /api/keychain/catalog/$c", ""},
			{"DELETE /api/keychain/$c/$n", ""},
			{"GET /api/internal/secret-audit?credential=$n", ""},
			{"POST /api/executions/$x/signals/$n", `{"data":{"$v":"$v"},"step":"$v","sender":"$v"}`},
			{"GET /api/executions/$x/waits", ""},
			{"GET /api/executions/$x/logs?step=$n", ""},
			{"PUT /api/result/$x/blob?name=$n&media_type=text/plain&source_step=$n", `x`},
			{"PUT /api/result/$x/blob?name=n&media_type=$n", `x`},
			{"PUT /api/result/$x/blob?name=n&store=$n&ttl=$n", `x`},
			{"PUT /api/result/$x", `{"name":"$v","data":"$v","source_step":"$v"}`},
			{"GET /api/result/$x/list?after=$n", ""},
			{"GET /api/result/resolve?ref=$n", ""},
			{"DELETE /api/credentials/$n", ""},
		} {
			fill := strings.NewReplacer("$n", name, "$v", value, "$x", id.String(), "$c", catalog, "$e", command.String())
			method, path, _ := strings.Cut(fill.Replace(c.ask), " ")
			a := w.internal(method, path, fill.Replace(c.body))
			if a.status >= 500 {
				t.Errorf("%.200s with %.100q: %d %s", a.what, c.body, a.status, a.body)
			}
			if a.status >= 400 {
				a.refused(a.status, "")
			}
		}
	}
	w.get("/api/executions/%d", id).ok()
	w.internal("POST", "/api/db/verify", "").ok().equal("clean", "true")
}
