package postgres

import (
	"bytes"
	"strings"
)

// nested reads values that are made of others: {…}, (…) and "k"=>"v".
type nested struct {
	src []byte
	at  int
	bad bool
}

func (n *nested) peek() byte {
	if n.at < len(n.src) {
		return n.src[n.at]
	}
	return 0
}

// take consumes c, or notes that the text is not what it should be.
func (n *nested) take(c byte) {
	if n.bad = n.bad || n.peek() != c; !n.bad {
		n.at++
	}
}

func (n *nested) end() bool { return !n.bad && n.at == len(n.src) }

// item reads one value up to any of stops: in quotes, where a backslash takes
// the next character as it is and a doubled quote is one, or bare.
func (n *nested) item(stops string) (text []byte, quoted bool) {
	for n.at < len(n.src) {
		c := n.src[n.at]
		switch {
		case c == '"':
			quoted = true
			text = n.quotes(text)
			continue
		case c == '\\' && n.at+1 < len(n.src):
			n.at++
			text = append(text, n.src[n.at])
		case strings.IndexByte(stops, c) >= 0:
			return text, quoted
		default:
			text = append(text, c)
		}
		n.at++
	}
	n.bad = true
	return text, quoted
}

func (n *nested) quotes(text []byte) []byte {
	for n.at++; n.at < len(n.src); n.at++ {
		switch c := n.src[n.at]; {
		case c == '\\' && n.at+1 < len(n.src):
			n.at++
			text = append(text, n.src[n.at])
		case c == '"' && n.at+1 < len(n.src) && n.src[n.at+1] == '"':
			n.at++
			text = append(text, '"')
		case c == '"':
			n.at++
			return text
		default:
			text = append(text, c)
		}
	}
	n.bad = true
	return text
}

// entire runs a reader over all of a text; if that does not work out, the text
// stays text.
func entire(dst, src []byte, read func(n *nested, dst []byte) []byte) []byte {
	n := &nested{src: src}
	out := read(n, dst)
	if !n.end() {
		return appendText(dst, src)
	}
	return out
}

// arrayEncoder writes arrays as lists, as deep as they are. Bounds that do not
// begin at 1 are not kept.
func arrayEncoder(elem encoder, delim byte) encoder {
	stops := string([]byte{delim, '}'})
	var list func(n *nested, dst []byte) []byte
	list = func(n *nested, dst []byte) []byte {
		n.take('{')
		dst = append(dst, '[')
		for first := true; !n.bad && n.peek() != '}'; first = false {
			if !first {
				n.take(delim)
				dst = append(dst, ',')
			}
			if n.peek() == '{' {
				dst = list(n, dst)
				continue
			}
			text, quoted := n.item(stops)
			if !quoted && strings.EqualFold(string(text), "null") {
				dst = append(dst, "null"...)
			} else {
				dst = elem(dst, text)
			}
		}
		n.take('}')
		return append(dst, ']')
	}
	return func(dst, src []byte) []byte {
		body := src
		if len(src) > 0 && src[0] == '[' {
			if i := bytes.IndexByte(src, '='); i > 0 {
				body = src[i+1:]
			}
		}
		return entire(dst, body, list)
	}
}

// compositeEncoder writes rows as maps of their columns.
func (k kinds) compositeEncoder(one *kind, numerics string) encoder {
	fields := make([]encoder, len(one.attrs))
	for i, a := range one.attrs {
		fields[i] = k.encoder(a.oid, numerics)
	}
	return func(dst, src []byte) []byte {
		return entire(dst, src, func(n *nested, dst []byte) []byte {
			n.take('(')
			dst = append(dst, '{')
			for i, a := range one.attrs {
				if i > 0 {
					n.take(',')
					dst = append(dst, ',')
				}
				dst = append(appendText(dst, []byte(a.name)), ':')
				if text, quoted := n.item(",)"); len(text) > 0 || quoted {
					dst = fields[i](dst, text)
				} else {
					dst = append(dst, "null"...)
				}
			}
			n.take(')')
			return append(dst, '}')
		})
	}
}

// appendHstore writes "k"=>"v" as a map.
func appendHstore(dst, src []byte) []byte {
	return entire(dst, src, func(n *nested, dst []byte) []byte {
		dst = append(dst, '{')
		for first := true; !n.bad && n.at < len(n.src); first = false {
			if !first {
				n.take(',')
				n.take(' ')
				dst = append(dst, ',')
			}
			key, _ := n.item("=")
			n.take('=')
			n.take('>')
			dst = append(appendText(dst, key), ':')
			value, quoted := n.hstoreValue()
			if quoted {
				dst = appendText(dst, value)
			} else {
				dst = append(dst, "null"...)
			}
		}
		return append(dst, '}')
	})
}

// hstoreValue reads a value in quotes, or NULL.
func (n *nested) hstoreValue() (text []byte, quoted bool) {
	if n.peek() == '"' {
		return n.quotes(nil), true
	}
	for _, c := range []byte("NULL") {
		n.take(c)
	}
	return nil, false
}
