package store_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func TestATimeRangeIsARangeOfIdsWithSlack(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	id := func(at time.Time) event.ID { return event.ID((at.UnixMilli() - 1704067200000) << 22) }
	for name, c := range map[string]struct {
		filter   store.ExecutionFilter
		from, to event.ID
	}{
		"nothing":         {store.ExecutionFilter{}, 0, math.MaxInt64},
		"from":            {store.ExecutionFilter{StartedFrom: noon}, id(noon.Add(-time.Hour)), math.MaxInt64},
		"to":              {store.ExecutionFilter{StartedTo: noon}, 0, id(noon.Add(time.Minute))},
		"before":          {store.ExecutionFilter{Before: 7}, 0, 7},
		"before and to":   {store.ExecutionFilter{Before: id(noon), StartedTo: noon}, 0, id(noon)},
		"before ids were": {store.ExecutionFilter{StartedFrom: time.Unix(0, 0), StartedTo: time.Unix(1, 0)}, 0, 0},
		"after the last":  {store.ExecutionFilter{StartedFrom: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, math.MaxInt64, math.MaxInt64},
	} {
		if from, to := c.filter.IDRange(); from != c.from || to != c.to {
			t.Errorf("%s: IDRange = %d, %d, want %d, %d", name, from, to, c.from, c.to)
		}
	}
}

func TestLikeKnowsItsWildcards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true},
		{"", "a", false},
		{"%", "", true},
		{"%", "abc", true},
		{"_", "ü", true},
		{"_", "", false},
		{"a%", "abc", true},
		{"a%", "Abc", false},
		{"%c", "abc", true},
		{"%b%", "abc", true},
		{"%b", "abc", false},
		{"a_c", "abc", true},
		{"a_c", "ac", false},
		{`a\_c`, "abc", false},
		{`a\_c`, "a_c", true},
		{`100\%`, "100%", true},
		{`100\%`, "1000", false},
		{"%ab%ab", "ababxab", true},
		{"%%a", "a", true},
		{`a\\`, `a\`, true},
		{`a\`, `a\`, true},
		{strings.Repeat("%a", 40) + "b", strings.Repeat("a", 4000), false},
	} {
		if got := store.Like(c.pattern, c.text); got != c.want {
			t.Errorf("Like(%q, %.20q) = %v", c.pattern, c.text, got)
		}
	}
}
