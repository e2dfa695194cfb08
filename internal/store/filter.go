package store

import (
	"math"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Ids carry the millisecond they were made in, counted from 2024-01-01, above
// their lower 22 bits. That is what lets a time range be a range of the
// primary key.
const (
	idEpoch = 1704067200000
	idShift = 22
)

// How far the time of a row may be from the time in its id. A start may have
// been planned long before it was stored; clocks that disagree put it earlier.
const (
	idSlackBelow = time.Hour
	idSlackAbove = time.Minute
)

// IDRange is the range of ids the filter allows: at least from, below to. A
// time range narrows it with slack, so rows still have to be compared with
// StartedFrom and StartedTo.
func (f *ExecutionFilter) IDRange() (from, to event.ID) {
	to = math.MaxInt64
	if !f.StartedFrom.IsZero() {
		from = IDAt(f.StartedFrom.Add(-idSlackBelow))
	}
	if !f.StartedTo.IsZero() {
		to = IDAt(f.StartedTo.Add(idSlackAbove))
	}
	if f.Before != 0 {
		to = min(to, f.Before)
	}
	return from, to
}

// IDAt is the smallest id of a time; 0 before ids began.
func IDAt(t time.Time) event.ID {
	ms := t.UnixMilli() - idEpoch
	switch {
	case ms <= 0:
		return 0
	case ms > math.MaxInt64>>idShift:
		return math.MaxInt64
	}
	return event.ID(ms << idShift)
}

// Like tells whether s matches an SQL LIKE pattern, with case: % stands for any
// text, _ for one character, a backslash takes the next character as it is.
func Like(pattern, s string) bool {
	p, text := likeTokens(pattern), []rune(s)
	// Where to go on when a match fails: behind the last %, one character further.
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(text) {
		switch {
		case i < len(p) && p[i] == likeAny:
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == likeOne || p[i] == text[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == likeAny {
		i++
	}
	return i == len(p)
}

// The wildcards of a pattern, as runes no text can hold.
const (
	likeAny rune = -1
	likeOne rune = -2
)

func likeTokens(pattern string) []rune {
	var out []rune
	escaped := false
	for _, r := range pattern {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped = true
			continue
		case r == '%':
			r = likeAny
		case r == '_':
			r = likeOne
		}
		out = append(out, r)
	}
	if escaped {
		out = append(out, '\\')
	}
	return out
}
