package playbook

import "strings"

// nearest returns the candidate that a misspelt word most likely means: one
// within two edits, or one that begins with the word or is begun by it.
func nearest(word string, candidates []string) (string, bool) {
	w := strings.ToLower(word)
	limit := min(2, len(w)/2) // every short word is near to every other
	best, bestDist := "", limit+1
	for _, c := range candidates {
		if len(c) > len(w)+limit || len(w) > len(c)+limit {
			continue
		}
		if d := distance(w, strings.ToLower(c)); d < bestDist {
			best, bestDist = c, d
		}
	}
	if best != "" {
		return best, true
	}
	for _, c := range candidates {
		l := strings.ToLower(c)
		if len(w) >= 3 && len(l) >= 3 && (strings.HasPrefix(l, w) || strings.HasPrefix(w, l)) {
			return c, true
		}
	}
	return "", false
}

// didYouMean is a remedy for a misspelt word: the nearest candidate, or all of
// them under the given heading.
func didYouMean(word, heading string, candidates []string) string {
	if c, ok := nearest(word, candidates); ok {
		return "did you mean " + quote(c) + "?"
	}
	return listing(heading, candidates)
}

// listing shows the words to choose from, as many as one cares to read.
func listing(heading string, words []string) string {
	const limit = 40
	switch {
	case len(words) == 0:
		return ""
	case len(words) > limit:
		return heading + " " + strings.Join(words[:limit], ", ") + ", …"
	}
	return heading + " " + strings.Join(words, ", ")
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64 // far from every keyword; keeps the table small
	}
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
