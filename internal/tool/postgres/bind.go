package postgres

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// bind writes a JSON value as the text of a type; nil is NULL. Complaints do
// not show the value.
func (k kinds) bind(raw json.RawMessage, oid uint32) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	one := k.get(oid)
	if one.form == domain {
		return k.bind(raw, one.elem)
	}
	text, isText, err := textOf(raw)
	if err != nil {
		return nil, err
	}
	switch one.form {
	case document:
		return bindDocument(raw, text, isText), nil
	case boolean:
		return bindBool(one, raw, text, isText)
	case integer:
		return bindInteger(one, raw, text, isText)
	case float, numeric:
		return bindNumber(one, raw, text, isText)
	case binary:
		return bindBinary(one, raw, text, isText)
	case array, composite, hstore:
		if isText {
			return []byte(text), nil
		}
		return k.bindNested(one, raw)
	case vector:
		if !isText {
			return []byte(strings.NewReplacer("[", "", "]", "", ",", " ").Replace(string(raw))), nil
		}
	}
	switch {
	case isText:
		return []byte(text), nil
	case (raw[0] == '{' || raw[0] == '[') && !textual(oid):
		return nil, mismatch(one, raw)
	}
	return raw, nil
}

// textOf is the value of a JSON string.
func textOf(raw []byte) (text string, isText bool, err error) {
	if raw[0] != '"' {
		return "", false, nil
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", true, errors.New("is no JSON value")
	}
	if strings.IndexByte(text, 0) >= 0 {
		return "", true, errors.New("holds a zero byte, which PostgreSQL cannot keep in text")
	}
	return text, true, nil
}

func mismatch(one *kind, raw []byte) error {
	return fmt.Errorf("must be %s, not %s", one.name, jsonName(raw))
}

func jsonName(raw []byte) string {
	switch raw[0] {
	case '"':
		return "this text"
	case '{':
		return "a map"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	}
	return "this number"
}

// bindDocument takes text that is a JSON object or list as the document itself;
// any other text is a JSON string.
func bindDocument(raw []byte, text string, isText bool) []byte {
	trimmed := strings.TrimSpace(text)
	if isText && (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) && json.Valid([]byte(trimmed)) {
		return []byte(trimmed)
	}
	return raw
}

func bindBool(one *kind, raw []byte, text string, isText bool) ([]byte, error) {
	value := string(raw)
	if isText {
		value = strings.ToLower(strings.TrimSpace(text))
	}
	switch value {
	case "true", "false", "1", "0", "t", "f", "yes", "no", "on", "off", "y", "n":
		return []byte(value), nil
	}
	return nil, mismatch(one, raw)
}

func bindInteger(one *kind, raw []byte, text string, isText bool) ([]byte, error) {
	value := string(raw)
	if isText {
		value = strings.TrimSpace(text)
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return []byte(value), nil
	}
	if !isText && len(value) < 40 { // 5.0 and 1e3 are whole numbers too
		if r, ok := new(big.Rat).SetString(value); ok && r.IsInt() && exponentSmall(value) {
			return []byte(r.Num().String()), nil
		}
	}
	return nil, mismatch(one, raw)
}

// exponentSmall keeps 1e999999999 from being written out.
func exponentSmall(value string) bool {
	i := strings.IndexAny(value, "eE")
	if i < 0 {
		return true
	}
	n, err := strconv.Atoi(value[i+1:])
	return err == nil && n < 30 && n > -30
}

func bindNumber(one *kind, raw []byte, text string, isText bool) ([]byte, error) {
	if !isText {
		if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
			return raw, nil
		}
		return nil, mismatch(one, raw)
	}
	value := strings.TrimSpace(text)
	switch strings.ToLower(strings.TrimLeft(value, "+-")) {
	case "nan", "infinity", "inf":
		return []byte(value), nil
	}
	if !isNumber([]byte(strings.TrimPrefix(value, "+"))) {
		return nil, mismatch(one, raw)
	}
	return []byte(value), nil
}

// bindBinary takes base64, as results have it, or \x and hexadecimal digits.
func bindBinary(one *kind, raw []byte, text string, isText bool) ([]byte, error) {
	if !isText {
		return nil, mismatch(one, raw)
	}
	if strings.HasPrefix(text, `\x`) {
		return []byte(text), nil
	}
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New(`must be bytes in base64, or \x with hexadecimal digits`)
	}
	return []byte(`\x` + hex.EncodeToString(plain)), nil
}

// bindNested writes lists and maps as arrays, rows and hstores.
func (k kinds) bindNested(one *kind, raw []byte) ([]byte, error) {
	var list []json.RawMessage
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil && json.Unmarshal(raw, &fields) != nil {
		return nil, mismatch(one, raw)
	}
	switch {
	case one.form == array && fields == nil:
		return k.bindArray(one, list)
	case one.form == composite:
		return k.bindComposite(one, list, fields)
	case one.form == hstore && fields != nil:
		return k.bindHstore(fields)
	}
	return nil, mismatch(one, raw)
}

func (k kinds) bindArray(one *kind, list []json.RawMessage) ([]byte, error) {
	out := []byte{'{'}
	lists := k.get(one.elem).form != document && k.get(one.elem).form != composite
	for i, item := range list {
		if i > 0 {
			out = append(out, one.delim)
		}
		if item = bytes.TrimSpace(item); lists && item[0] == '[' {
			var deeper []json.RawMessage
			if err := json.Unmarshal(item, &deeper); err != nil {
				return nil, mismatch(one, item)
			}
			text, err := k.bindArray(one, deeper)
			if err != nil {
				return nil, err
			}
			out = append(out, text...)
			continue
		}
		text, err := k.bind(item, one.elem)
		if err != nil {
			return nil, err
		}
		out = appendElement(out, text, "NULL")
	}
	return append(out, '}'), nil
}

// appendElement quotes a part of a nested value.
func appendElement(out, text []byte, null string) []byte {
	if text == nil {
		return append(out, null...)
	}
	out = append(out, '"')
	for _, c := range text {
		if c == '"' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, c)
	}
	return append(out, '"')
}

func (k kinds) bindComposite(one *kind, list []json.RawMessage, fields map[string]json.RawMessage) ([]byte, error) {
	if fields == nil && len(list) != len(one.attrs) {
		return nil, fmt.Errorf("must have %d fields to be a %s", len(one.attrs), one.name)
	}
	out := []byte{'('}
	left := len(fields)
	for i, a := range one.attrs {
		if i > 0 {
			out = append(out, ',')
		}
		value, given := fields[a.name]
		if given {
			left--
		}
		if fields == nil {
			value = list[i]
		}
		text, err := k.bind(value, a.oid)
		if err != nil {
			return nil, fmt.Errorf("in field %s: it %w", a.name, err)
		}
		out = appendElement(out, text, "")
	}
	if left > 0 {
		return nil, fmt.Errorf("has fields that %s does not have", one.name)
	}
	return append(out, ')'), nil
}

func (k kinds) bindHstore(fields map[string]json.RawMessage) ([]byte, error) {
	var out []byte
	for key, value := range fields {
		if len(out) > 0 {
			out = append(out, ", "...)
		}
		text, err := k.bind(value, 25)
		if err != nil {
			return nil, err
		}
		out = appendElement(out, []byte(key), "")
		out = append(out, "=>"...)
		out = appendElement(out, text, "NULL")
	}
	if out == nil {
		return []byte{}, nil
	}
	return out, nil
}
