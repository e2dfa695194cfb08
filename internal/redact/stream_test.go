package redact_test

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/redact"
)

// A text in which every other character is escaped goes through as it comes: what
// is kept back of it does not grow.
func TestATextFullOfEscapesIsNotKeptBack(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"lines": `y\n`, "quotes": `\"`, "letters": `\u00e9`, "pairs": `\ud83d\ude00`, "halves": `\ud83d`} {
		var s redact.Secrets
		s.Add("correct horse")
		var out strings.Builder
		w := s.JSONText(&out)
		text := `"` + strings.Repeat(part, 300_000/len(part)) + `correct horse"`
		for rest := text; len(rest) > 0; rest = rest[min(1000, len(rest)):] {
			if _, err := w.Write([]byte(rest[:min(1000, len(rest))])); err != nil {
				t.Fatal(err)
			}
		}
		if out.Len() < 100_000 {
			t.Errorf("%s: of %d bytes only %d were written on the way", name, len(text), out.Len())
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := strings.Replace(text, "correct horse", redact.Mark, 1); out.String() != want {
			t.Errorf("%s: %d bytes came out, want %d; the end is %q", name, out.Len(), len(want), out.String()[out.Len()-60:])
		}
	}
}
