package cli

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

func TestLinesOfSeveralCommandsAreKeptApart(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	l := &stepLines{out: &out, named: true, open: map[event.ID]string{}}
	for _, c := range []client.LogChunk{
		{EventID: 1, Step: "a", Text: "one\ntw"},
		{EventID: 2, Step: "b", Text: "other\n"},
		{EventID: 1, Step: "a", Text: "o\n", Dropped: 0},
		{EventID: 2, Step: "b", Dropped: 7, Text: "rest", End: true},
		{EventID: 1, Step: "a", Text: "open"},
	} {
		if err := l.add(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	want := "a | one\nb | other\na | two\nb | … 7 bytes dropped …\nb | rest\na | open\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}
