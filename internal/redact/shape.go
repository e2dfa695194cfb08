package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
)

// Texts that are secrets whoever wrote them. Words that only may be one, such as
// long hexadecimal numbers, are left alone: those are hashes and ids.
var (
	// token matches what issuers of keys begin them with.
	token = regexp.MustCompile(`\b(?:sk-ant-|sk-|AIza|ya29\.|gh[psour]_|github_pat_|xox[baprs]-)[A-Za-z0-9_\-.]{12,}`)
	jwt   = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*`)
	// scheme matches the value of an Authorization header.
	scheme = regexp.MustCompile(`(?i)\b(bearer|basic)(\s+)([A-Za-z0-9._~+/=-]{8,})`)
	// userinfo matches the password of a URL.
	userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#@:"'\\]*:)([^\s/?#@"'\\]+)@`)
	query    = regexp.MustCompile(`(?i)([?&](?:api[_-]?key|access[_-]?token|client[_-]?secret|refresh[_-]?token|password|secret)=)([^&\s"'\\#]{4,})`)
	pem      = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`)
)

// hints are in every text that has a shape, so that others are passed quickly.
var hints = []string{
	"eyJ", "sk-", "AIza", "ya29.", "ghp_", "ghs_", "gho_", "ghu_", "ghr_", "github_pat_", "xox", "-----BEGIN", "://",
	"earer ", "asic ", "EARER ", "ASIC ", "earer\t", "asic\t",
}

func mayHaveShape(text string) bool {
	for _, h := range hints {
		if strings.Contains(text, h) {
			return true
		}
	}
	return false
}

// shapeless is text without what has the shape of a secret.
func shapeless(text string) string {
	if !mayHaveShape(text) {
		return text
	}
	if strings.Contains(text, "-----BEGIN") {
		text = pem.ReplaceAllString(text, Mark)
	}
	if strings.Contains(text, "://") {
		text = userinfo.ReplaceAllStringFunc(text, func(m string) string {
			parts := userinfo.FindStringSubmatch(m)
			return parts[1] + Mark + "@"
		})
		text = query.ReplaceAllString(text, "${1}"+Mark)
	}
	text = scheme.ReplaceAllStringFunc(text, func(m string) string {
		parts := scheme.FindStringSubmatch(m)
		if !isCredential(parts[1], parts[3]) {
			return m
		}
		return parts[1] + parts[2] + Mark
	})
	return jwt.ReplaceAllString(token.ReplaceAllString(text, Mark), Mark)
}

// isCredential tells the value of a header from a word of a sentence that
// follows "basic" or "bearer".
func isCredential(scheme, value string) bool {
	if strings.EqualFold(scheme, "basic") {
		plain, err := base64.StdEncoding.DecodeString(value)
		return err == nil && strings.Contains(string(plain), ":")
	}
	return len(value) >= 20 || strings.ContainsAny(value, "0123456789._~+/=")
}
