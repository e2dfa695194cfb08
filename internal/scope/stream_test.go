package scope

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/jinja"
)

// feed writes data in pieces of random length.
func feed(r *rand.Rand, s *Stream, data string) (string, error) {
	for len(data) > 0 {
		n := min(len(data), 1+r.IntN(1+r.IntN(40)))
		if _, err := s.Write([]byte(data[:n])); err != nil {
			return "", err
		}
		data = data[n:]
	}
	out, err := s.Close()
	return string(out), err
}

// document makes JSON with all that texts can hold; keys repeat nowhere.
func document(r *rand.Rand, depth int) string {
	blank := strings.Repeat([]string{" ", "\n", "\t", ""}[r.IntN(4)], r.IntN(3))
	var b strings.Builder
	switch n := r.IntN(14); {
	case n < 4 && depth < 12:
		b.WriteString("{")
		for i := range r.IntN(7) {
			if i > 0 {
				b.WriteString(",")
			}
			b.WriteString(blank + quoted(r, fmt.Sprintf("k%d", i), 5) + blank + ":" + document(r, depth+1))
		}
		b.WriteString(blank + "}")
	case n < 7 && depth < 12:
		b.WriteString("[")
		for i := range r.IntN(4) {
			if i > 0 {
				b.WriteString(blank + ",")
			}
			b.WriteString(document(r, depth+1))
		}
		b.WriteString("]")
	case n < 10:
		b.WriteString(quoted(r, "", []int{3, 40, 700}[r.IntN(3)]))
	default:
		b.WriteString([]string{"0", "-1", "12345678901234567890", "1.50", "-0.0", "1e5", "2E-3", "true", "false", "null", "9007199254740993"}[r.IntN(11)])
	}
	return blank + b.String() + blank
}

func quoted(r *rand.Rand, lead string, most int) string {
	out := `"` + lead
	for range r.IntN(most) {
		out += []string{"a", "ü", "€", "😀", `\n`, `\"`, `\\`, `\u0041`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00x`, `\ud83d\u0041`, "<", "\u2028", "\xff", "\xe2\x82", `\/`}[r.IntN(18)]
	}
	return out + `"`
}

func TestAStreamMakesTheSameSummary(t *testing.T) {
	t.Parallel()
	chosen, cut := 0, 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := document(r, 0)
		if seed%3 == 0 {
			data = "{" + randomEntries(r, 0) + "}"
		}
		var selected []Selection
		for i := range r.IntN(4) {
			sel := Selection{As: fmt.Sprintf("s%d", i)}
			for range 1 + r.IntN(4) {
				sel.Path = append(sel.Path, []string{"k0", "k1", "k2", "k5", "0", "1"}[r.IntN(6)])
			}
			selected = append(selected, sel)
		}
		if _, err := jinja.FromJSON([]byte(data)); err != nil {
			t.Fatalf("seed %d: %v in %s", seed, err, data)
		}
		for name, pair := range map[string][2]func() (string, error){
			"value": {
				func() (string, error) { return string(Summarise(json.RawMessage(data), selected)), nil },
				func() (string, error) { return feed(r, NewStream(selected), data) },
			},
			"sequence": {
				func() (string, error) { return string(SummariseSequence(json.RawMessage(data), selected)), nil },
				func() (string, error) { return feed(r, NewSequenceStream(selected), data) },
			},
		} {
			want, _ := pair[0]()
			got, err := pair[1]()
			if err != nil || got != want {
				t.Fatalf("seed %d, %s: the stream gives\n%s (%v), want\n%s\nof %s\nselecting %v", seed, name, got, err, want, data, selected)
			}
			if strings.Contains(got, markSelected) {
				chosen++
			}
			if strings.Contains(got, markTruncated) {
				cut++
			}
		}
	}
	if chosen < 5 || cut < 5 {
		t.Errorf("%d summaries hold selected parts and %d were cut; the test shows little", chosen, cut)
	}
}

func TestAStreamAcceptsWhatTheDecoderAccepts(t *testing.T) {
	t.Parallel()
	texts := []string{
		``, ` `, `1`, ` 1 `, `01`, `-`, `-1`, `1.`, `1.5e`, `1e+5`, `1E-05`, `.5`, `+1`, `tru`, `true`, `nulll`, `nul`, `{}`, `[]`, `[`, `{`, `]`, `}`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1 "b":2}`, `{"a":1}}`, `[]]`, `[}`, `{]`, `{a:1}`, `"a`, `"\x"`, `"\u12"`, `"\u12g4"`,
		"\"\n\"", "\"\x01\"", `1 2`, `{} []`, `""`, `"\u0000"`, `"\ud800"`, `1e999`, `[1e999]`, `{"a":1e999}`, `'a'`, `NaN`, `Infinity`, "\ufeff1",
		strings.Repeat("[", 1001) + strings.Repeat("]", 1001), strings.Repeat("[", 1002) + strings.Repeat("]", 1002),
		strings.Repeat("[", 1000) + "1" + strings.Repeat("]", 1000), strings.Repeat("[", 1001) + "1" + strings.Repeat("]", 1001),
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 { // damaged documents
		text := []byte(document(r, 8))
		if len(text) > 0 {
			text[r.IntN(len(text))] = `{}[]",:\0a -.e`[r.IntN(14)]
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		_, want := jinja.FromJSON([]byte(text))
		_, got := feed(r, NewStream(nil), text)
		if (want == nil) != (got == nil) {
			t.Errorf("%.80q: the stream says %v, the decoder %v", text, got, want)
		}
	}
}

func TestAStreamHoldsLittle(t *testing.T) {
	piece := []byte(strings.Repeat(`{"name":"`+strings.Repeat("x", 900)+`","n":[1,2,{"deep":null}]},`, 1000))
	s := NewStream([]Selection{{Path: []string{"rows", "1", "n"}, As: "second"}, {Path: []string{"rows"}, As: "rows"}})
	write := func(p []byte) {
		if _, err := s.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before := m.HeapAlloc
	write([]byte(`{"rows":[`))
	for range 16 {
		write(piece)
	}
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > before+4<<20 {
		t.Errorf("after %d MiB the heap has %d MiB", 16*len(piece)>>20, m.HeapAlloc>>20)
	}
	write([]byte(`7],"end":true}`))
	out, err := s.Close()
	if want := `{"rows":[{"name":{"_len":900},"n":[1]}],"end":true,"_selected":{"second":[1,2,{"deep":null}]}}`; err != nil || string(out) != want {
		t.Errorf("the summary is %s, %v; want %s", out, err, want)
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"a":[1,"x"],"b":{"c":null}}`), uint64(3))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		_, want := jinja.FromJSON(data)
		got, err := feed(rand.New(rand.NewPCG(seed, 0)), NewStream(nil), string(data))
		if (want == nil) != (err == nil) && !strings.Contains(fmt.Sprint(err), "too long") {
			t.Fatalf("the stream says %v, the decoder %v", err, want)
		}
		if err == nil && !json.Valid([]byte(got)) {
			t.Fatalf("the summary is no JSON: %s", got)
		}
	})
}
