package cli

import (
	"fmt"
	"slices"
	"strings"
)

// nearest proposes the known name a wrong one was probably meant to be, as
// " (did you mean …?)"; "" when none is close.
func nearest(wrong string, known []string) string {
	best, at := "", 0
	for _, k := range slices.Sorted(slices.Values(known)) {
		d := distance(strings.ToLower(wrong), strings.ToLower(k))
		if limit := max(1, min(len(wrong), len(k))/3); d <= limit && (best == "" || d < at) {
			best, at = k, d
		}
	}
	if best == "" {
		for _, k := range known {
			if len(wrong) >= 3 && (strings.Contains(k, wrong) || len(k) >= 3 && strings.Contains(wrong, k)) {
				best = k
				break
			}
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance counts the edits between two words, a swap of neighbours being one.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 200 || len(y) > 200 {
		return 1 << 20
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
