package jinja

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// encodeFilters write values for another language or medium, and read them back.
func encodeFilters() map[string]*operation {
	return map[string]*operation{
		"tojson":    op(tojsonFilter, "indent?"),
		"fromjson":  op(fromjsonFilter),
		"b64encode": op(notNone(textFirst(b64encodeFilter))),
		"b64decode": op(notNone(textFirst(b64decodeFilter))),
		"escape":    op(onText(htmlEscaper.Replace)),
		"urlencode": op(urlencodeFilter),
		"sql":       op(sqlFilter),
		"sqlident":  op(sqlidentFilter),
		"shq":       op(shqFilter),
		"hash":      op(notNone(textFirst(hashFilter)), "algorithm?"),
	}
}

// notNone refuses none, which as text would be the four letters None.
func notNone(m method) method {
	return func(e env, self any, a args) (any, error) {
		n, err := base(self)
		if err == nil && n == nil {
			return nil, typeError("expected a text, got none").withRemedy("give a fallback with | default('')")
		}
		return m(e, self, a)
	}
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

// tojsonFilter prints JSON with sorted keys. HTML is not escaped: templates
// make requests and queries, not pages.
func tojsonFilter(e env, self any, a args) (any, error) {
	w := jsonWriter{sorted: true, budget: e.budget()}
	if indent := a.or(0, nil); indent != nil {
		n, err := asInt(indent)
		if err != nil {
			return nil, err
		}
		w.indent = int(min(max(n, 0), 16))
	}
	out, err := w.value(nil, self, 0)
	if err != nil {
		return nil, err
	}
	return jsonText(out), e.budget().grow(len(out))
}

// fromjsonFilter reads JSON; what is not JSON is none, what is not text is
// already read.
func fromjsonFilter(e env, self any, _ args) (any, error) {
	n, err := base(self)
	if err != nil || IsUndefined(n) {
		return nil, err
	}
	s, ok := n.(string)
	if !ok {
		return self, nil
	}
	if err := e.budget().grow(len(s)); err != nil {
		return nil, err
	}
	v, err := FromJSON([]byte(s))
	if err != nil {
		return nil, nil
	}
	return v, nil
}

func b64encodeFilter(e env, self any, _ args) (any, error) {
	s := self.(string)
	if err := e.budget().grow(base64.StdEncoding.EncodedLen(len(s))); err != nil {
		return nil, err
	}
	return base64.StdEncoding.EncodeToString([]byte(s)), nil
}

// b64decodeFilter reads both alphabets, with or without padding.
func b64decodeFilter(e env, self any, _ args) (any, error) {
	s := strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "").Replace(strings.TrimSpace(self.(string)))
	out, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil, valueError("the text is not base64")
	}
	return string(out), e.budget().grow(len(out))
}

// urlencodeFilter quotes a text for a URL path, or writes a mapping or a list of
// pairs as a query.
func urlencodeFilter(e env, self any, _ args) (any, error) {
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	_, isList := sequence(n)
	if _, isMap := mapping(n); !isMap && !isList {
		s, err := text(e.budget(), n)
		if err != nil {
			return nil, err
		}
		if err := e.budget().grow(3 * len(s)); err != nil {
			return nil, err
		}
		return urlQuote(s, "/", "%20"), nil
	}
	pairs, err := pairsOf(e, n)
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	for i, p := range pairs {
		s, err := text(e.budget(), p.val)
		if err != nil {
			return nil, err
		}
		if err := e.budget().grow(3 * (len(p.key) + len(s))); err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte('&')
		}
		out.WriteString(urlQuote(p.key, "", "+") + "=" + urlQuote(s, "", "+"))
	}
	return out.String(), nil
}

const upperHex = "0123456789ABCDEF"

// urlQuote percent-encodes all but letters, digits, _.-~ and what else is safe.
func urlQuote(s, safe, space string) string {
	var out strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c == ' ':
			out.WriteString(space)
		case isDigit(c), c|0x20 >= 'a' && c|0x20 <= 'z', strings.IndexByte("_.-~", c) >= 0, strings.IndexByte(safe, c) >= 0:
			out.WriteByte(c)
		default:
			out.Write([]byte{'%', upperHex[c>>4], upperHex[c&0xf]})
		}
	}
	return out.String()
}

// sqlFilter writes a value as a literal of standard SQL: a list as (a, b) for
// IN, a mapping as its JSON.
func sqlFilter(e env, self any, _ args) (any, error) {
	s, err := sqlLiteral(e, self)
	if err != nil {
		return nil, err
	}
	return s, e.budget().grow(len(s))
}

// sqlLiteral writes one value. Anything it cannot write safely is an error.
func sqlLiteral(e env, v any) (string, error) {
	n, err := base(v)
	if err != nil {
		return "", err
	}
	switch n := n.(type) {
	case nil, Undefined:
		return "NULL", nil
	case bool:
		return strings.ToUpper(map[bool]string{true: "true", false: "false"}[n]), nil
	case int64, float64:
		return text(e.budget(), n)
	case string:
		return sqlString(n)
	}
	list, ok := sequence(n)
	if !ok {
		w := jsonWriter{budget: e.budget()}
		out, err := w.value(nil, n, 0)
		if err != nil {
			return "", err
		}
		return sqlString(string(out))
	}
	if len(list) == 0 {
		return "(NULL)", nil // matches nothing, where () would be an error
	}
	parts := make([]string, len(list))
	for i, item := range list {
		if _, nested := sequence(item); nested {
			return "", typeError("a list inside a list has no SQL literal")
		}
		if parts[i], err = sqlLiteral(e, item); err != nil {
			return "", err
		}
		if err := e.budget().grow(len(parts[i])); err != nil {
			return "", err
		}
	}
	return "(" + strings.Join(parts, ", ") + ")", e.budget().step(len(list))
}

// sqlString doubles quotes, which is all that standard SQL needs; a backslash
// has no meaning there.
func sqlString(s string) (string, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return "", valueError("a text with a zero byte has no SQL literal")
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'", nil
}

// sqlidentFilter quotes an identifier; a list is a qualified name.
func sqlidentFilter(e env, self any, _ args) (any, error) {
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	parts, ok := sequence(n)
	if !ok {
		parts = []any{n}
	}
	quoted := make([]string, len(parts))
	for i, p := range parts {
		s, err := asText(p)
		if err != nil {
			return nil, err
		}
		if s == "" || strings.IndexByte(s, 0) >= 0 {
			return nil, valueError("an SQL identifier is a text without zero bytes, and not empty")
		}
		quoted[i] = `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		if err := e.budget().grow(len(quoted[i])); err != nil {
			return nil, err
		}
	}
	return strings.Join(quoted, "."), nil
}

// shqFilter quotes a text as one word of a POSIX shell; a list as several.
func shqFilter(e env, self any, _ args) (any, error) {
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	parts, ok := sequence(n)
	if !ok {
		parts = []any{n}
	}
	quoted := make([]string, len(parts))
	for i, p := range parts {
		s := ""
		if p != nil {
			if s, err = text(e.budget(), p); err != nil {
				return nil, err
			}
		}
		if strings.IndexByte(s, 0) >= 0 {
			return nil, valueError("a text with a zero byte cannot be passed to a shell")
		}
		quoted[i] = "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		if err := e.budget().grow(len(quoted[i])); err != nil {
			return nil, err
		}
	}
	return strings.Join(quoted, " "), nil
}

// hashFilter is the hexadecimal digest of a text, for keys and not for secrets.
func hashFilter(e env, self any, a args) (any, error) {
	name, err := a.text(0, "sha256")
	if err != nil {
		return nil, err
	}
	b := []byte(self.(string))
	if err := e.budget().grow(len(b)); err != nil {
		return nil, err
	}
	var sum []byte
	switch name {
	case "sha256":
		h := sha256.Sum256(b)
		sum = h[:]
	case "sha512":
		h := sha512.Sum512(b)
		sum = h[:]
	case "sha1":
		h := sha1.Sum(b)
		sum = h[:]
	case "md5":
		h := md5.Sum(b)
		sum = h[:]
	default:
		return nil, valueError("hash knows sha256, sha512, sha1 and md5, not '%s'", name)
	}
	return hex.EncodeToString(sum), nil
}
