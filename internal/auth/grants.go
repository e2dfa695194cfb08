package auth

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	maxGrants = 64
	maxPrefix = 512
)

// ParseGrants reads grants as people write them: a role, or a role and the path
// it is narrowed to, separated by commas: "viewer, operator:team/a".
func ParseGrants(text string) ([]Grant, error) {
	var out []Grant
	for part := range strings.SplitSeq(text, ",") {
		g, err := parseGrant(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	return out, CheckGrants(out)
}

func parseGrant(text string) (Grant, error) {
	role, prefix, narrowed := strings.Cut(text, ":")
	g := Grant{Role: Role(strings.TrimSpace(role)), Prefix: strings.Trim(strings.TrimSpace(prefix), "/")}
	if narrowed && g.Prefix == "" {
		return g, &event.Error{
			Code: event.Invalid, Message: fmt.Sprintf("grant %q names no path after the colon", text),
			Remedy: "write " + string(g.Role) + " alone to cover everything, or a path such as " + string(g.Role) + ":team/a",
		}
	}
	return g, nil
}

// CheckGrants refuses grants that no token can have.
func CheckGrants(grants []Grant) error {
	if len(grants) == 0 || len(grants) > maxGrants {
		return event.Errorf(event.Invalid, "there must be 1 to %d grants, not %d", maxGrants, len(grants))
	}
	for _, g := range grants {
		if !slices.Contains(Roles(), g.Role) {
			return &event.Error{
				Code: event.Invalid, Message: fmt.Sprintf("there is no role %q", g.Role),
				Remedy: "the roles are viewer, worker, operator and admin; write them like operator or operator:team/a",
			}
		}
		odd := func(c rune) bool { return unicode.IsControl(c) || unicode.IsSpace(c) || strings.ContainsRune(`*,;`, c) }
		parts := strings.Split(g.Prefix, "/")
		if len(g.Prefix) > maxPrefix || strings.ContainsFunc(g.Prefix, odd) || slices.Contains(parts, "..") || slices.Contains(parts, ".") ||
			g.Prefix != "" && slices.Contains(parts, "") {
			return &event.Error{
				Code: event.Invalid, Message: fmt.Sprintf("%q is not a path that a grant can be narrowed to", g.Prefix),
				Remedy: "write the beginning of playbooks' paths in whole names, such as team/a; what lies below is covered too",
			}
		}
	}
	return nil
}

// String is the grant as ParseGrants reads it.
func (g Grant) String() string {
	if g.Prefix == "" {
		return string(g.Role)
	}
	return string(g.Role) + ":" + g.Prefix
}

// FormatGrants is the inverse of ParseGrants.
func FormatGrants(grants []Grant) string {
	var words []string
	for _, g := range grants {
		words = append(words, g.String())
	}
	return strings.Join(words, ",")
}

// mayGive tells whether p has what a grant gives, so that nobody gives away
// more than they have.
func (p *Principal) mayGive(g Grant) bool {
	return slices.ContainsFunc(p.Grants, func(own Grant) bool {
		return own.Role.Includes(g.Role) && (own.Prefix == "" || g.Prefix != "" && own.Covers(g.Prefix))
	})
}
