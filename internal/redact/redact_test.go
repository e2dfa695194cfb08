package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/redact"
)

func secrets(values ...string) *redact.Secrets {
	s := &redact.Secrets{}
	s.Add(values...)
	return s
}

func TestKnownValuesAreReplacedHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	const canary = `p@ss w"ord/é+1`
	s := secrets(canary)
	for name, text := range map[string]string{
		"as it is":        "it is " + canary + ".",
		"in a query":      "https://x.example/?q=p%40ss+w%22ord%2F%C3%A9%2B1",
		"in a path":       "/p@ss%20w%22ord%2F%C3%A9+1/x",
		"in base64":       "cEBzcyB3Im9yZC/DqSsx",
		"in JSON in text": `{"pw":"p@ss w\"ord/é+1"}`,
	} {
		if got := s.String(text); !strings.Contains(got, redact.Mark) || strings.Contains(got, "ord") {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, escape := range []bool{true, false} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(escape)
		if err := enc.Encode(map[string]any{"a": []string{"x" + canary + "y"}, canary: 1}); err != nil {
			t.Fatal(err)
		}
		got := s.JSON(b.Bytes())
		if !json.Valid(got) || strings.Count(string(got), redact.Mark) != 2 || strings.Contains(string(got), "ord") {
			t.Errorf("%s", got)
		}
	}
}

func TestTheLongerSecretIsFoundFirst(t *testing.T) {
	t.Parallel()
	if got := secrets("secret", "secret-and-more").String("a secret-and-more b secret c"); got != "a [REDACTED] b [REDACTED] c" {
		t.Error(got)
	}
}

func TestOnlyTheSecretPartsOfACredentialAreHidden(t *testing.T) {
	t.Parallel()
	s := &redact.Secrets{}
	s.AddData(map[string]any{
		"db_host": "database.example", "db_user": "reporter", "db_password": "hunter22", "db_port": int64(5432),
		"url": "nats://admin:n4tspass@nats.example:4222", "nested": map[string]any{"api_key": "k-1234567"},
	})
	got := s.String("reporter@database.example hunter22 n4tspass k-1234567 nats.example cmVwb3J0ZXI6aHVudGVyMjI=")
	if want := "reporter@database.example [REDACTED] [REDACTED] [REDACTED] nats.example [REDACTED]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestShapes(t *testing.T) {
	t.Parallel()
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP"
	for text, want := range map[string]string{
		"Authorization: Bearer abc123def456":             "Authorization: Bearer [REDACTED]",
		"Authorization: Basic dXNlcjpwYXNz":              "Authorization: Basic [REDACTED]",
		"token " + jwt + " end":                          "token [REDACTED] end",
		"key sk-ant-REDACTED":                            "key [REDACTED]",
		"key ghp_abcdefghijklmnopqrst":                   "key [REDACTED]",
		"postgres://app:s3cr3t@db/x":                     "postgres://app:[REDACTED]@db/x",
		"get https://api.example/x?api_key=abcd1234&n=1": "get https://api.example/x?api_key=[REDACTED]&n=1",
		"-----BEGIN RSA PRIVATE KEY-----\nMIIabc\nxyz\n-----END RSA PRIVATE KEY-----\nafter": "[REDACTED]\nafter",

		"Basic functionality of the bearer instrument":                            "",
		"author total_tokens next_page_token":                                     "",
		"https://api.example/x?page_token=abc&next_token=def&token_count=3":       "",
		"sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08": "",
		"task-force risk-averse sk-8":                                             "",
		"https://example.com/path: user@example.com":                              "",
	} {
		if want == "" {
			want = text
		}
		if got := new(redact.Secrets).String(text); got != want {
			t.Errorf("%q\nis   %q\nwant %q", text, got, want)
		}
	}
}

func TestANumberThatIsASecretLeavesValidJSON(t *testing.T) {
	t.Parallel()
	got := secrets("12345678").JSON(json.RawMessage(`{"a":12345678,"b":"x12345678","c":123456789,"d":[true,-1.5e3]}`))
	if want := `{"a":"[REDACTED]","b":"x[REDACTED]","c":123456789,"d":[true,-1.5e3]}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestASecretWithinAnEscapeLeavesValidJSON(t *testing.T) {
	t.Parallel()
	got := secrets("nABCDEF").JSON(json.RawMessage(`["a\nABCDEF"]`))
	if !json.Valid(got) {
		t.Errorf("%s", got)
	}
}

// TestStreamsAreCutAnywhere feeds texts in random pieces: what comes out has no
// secret and is what the whole would have given.
func TestStreamsAreCutAnywhere(t *testing.T) {
	t.Parallel()
	s := secrets("swordfish-01", "sword", `quo"te-secret`)
	rng := rand.New(rand.NewPCG(1, 2))
	words := []string{"swordfish-01", "swordfi", "plain ", "\n", `quo"te-secret`, "é", "Bearer abc123def456gh", " ", strings.Repeat("x", 300)}
	for range 80 {
		var text strings.Builder
		for range rng.IntN(60) {
			text.WriteString(words[rng.IntN(len(words))])
		}
		feed(t, rng, s.Text, text.String(), s.String(text.String()))
		raw, err := json.Marshal(map[string]any{"k": text.String(), "n": 12, "l": []any{nil, true, text.String()}})
		if err != nil {
			t.Fatal(err)
		}
		feed(t, rng, s.JSONText, string(raw), string(s.JSON(raw)))
	}
}

func feed(t *testing.T, rng *rand.Rand, filter func(io.Writer) io.WriteCloser, text, want string) {
	t.Helper()
	var out bytes.Buffer
	w := filter(&out)
	for rest := text; rest != ""; {
		n := 1 + rng.IntN(len(rest))
		if _, err := io.WriteString(w, rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got := out.String()
	if strings.Contains(got, "swordfish-01") || strings.Contains(got, "te-secret") {
		t.Fatalf("a secret came through: %q of %q", got, text)
	}
	if got != want {
		t.Fatalf("in pieces: %q\nas a whole: %q", got, want)
	}
}

func TestALongStreamIsNotHeld(t *testing.T) {
	t.Parallel()
	s := secrets("swordfish-01")
	for name, filter := range map[string]func(io.Writer) io.WriteCloser{"text": s.Text, "json": s.JSONText} {
		var out counter
		w := filter(&out)
		if name == "json" {
			_, _ = io.WriteString(w, `"`)
		}
		total := 0
		for i := range 4000 {
			n, err := fmt.Fprintf(w, "%d swordfish-01 %s ", i, strings.Repeat("é", 200))
			if err != nil {
				t.Fatal(err)
			}
			total += n
			if held := total - out.n - 2*i; held > 200<<10 {
				t.Fatalf("%s: %d bytes are held", name, held)
			}
		}
		if name == "json" {
			_, _ = io.WriteString(w, `"`)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if out.marks != 4000 {
			t.Errorf("%s: %d marks", name, out.marks)
		}
	}
}

// counter counts bytes and marks; marks may be cut between two writes.
type counter struct {
	n, marks int
	tail     string
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += len(p)
	text := c.tail + string(p)
	c.marks += strings.Count(text, redact.Mark)
	c.tail = ""
	if i := strings.LastIndex(text, "["); i >= 0 && !strings.Contains(text[i:], "]") {
		c.tail = text[i:]
	}
	return len(p), nil
}

func TestWhatIsShownGoesByNameAndLook(t *testing.T) {
	t.Parallel()
	got := new(redact.Secrets).ShownJSON(json.RawMessage(`{
		"author":"Ada Lovelace","total_tokens":123456789012345678,"next_page_token":"CAUQAA123456789","password":"hunter2222","db":{"clientSecret":"abcd1234efgh"},
		"credential":"pg_auth","api_key":"{{ keychain.a.b }}","headers":{"Authorization":"x","Cookie":"a=b"},"secret":"pg_k8s","token":"abcdef123456","read":{"workload.login.password":"path-to-3333"}}`))
	var m map[string]any
	if err := json.Unmarshal(got, &m); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []string{"Ada Lovelace", "123456789012345678", "CAUQAA123456789", "pg_auth", "keychain.a.b", "pg_k8s", "abcdef123456"} {
		if !strings.Contains(string(got), keep) {
			t.Errorf("%s is gone: %s", keep, got)
		}
	}
	for _, gone := range []string{"hunter2222", "abcd1234efgh", "a=b", "path-to-3333"} {
		if strings.Contains(string(got), gone) {
			t.Errorf("%s is shown: %s", gone, got)
		}
	}
}

func BenchmarkNothingToHide(b *testing.B) {
	s := secrets("swordfish-01", "another-secret")
	raw := json.RawMessage(`{"rows":[{"id":1,"name":"Ada","score":3.5},{"id":2,"name":"Grace","score":4.5}],"row_count":2}`)
	b.ReportAllocs()
	for b.Loop() {
		s.JSON(raw)
	}
}
