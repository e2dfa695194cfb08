package cli

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// payloadFlags are the ways to give an execution its input.
type payloadFlags struct {
	Payload string   `help:"Input as a JSON object; its keys replace those of the workload. @FILE reads a file." placeholder:"JSON" aliases:"workload"`
	Input   string   `short:"i" help:"JSON or YAML file with the input; --payload and --set win over its keys." placeholder:"FILE"`
	Set     []string `help:"Set one key of the input; the value is JSON if it reads as JSON, else text." placeholder:"KEY=VALUE" sep:"none"`
}

// value merges --input, --payload and --set; the later wins.
func (f payloadFlags) value() (json.RawMessage, error) {
	out := jinja.NewDict(len(f.Set))
	if f.Input != "" {
		doc, err := readDocument(&Env{Stdin: os.Stdin}, f.Input)
		if err != nil {
			return nil, err
		}
		if err := overlay(out, doc); err != nil {
			return nil, invalidf("--input %s: %v", f.Input, err)
		}
	}
	text := f.Payload
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, invalidf("read payload: %v", err)
		}
		text = string(b)
	}
	if strings.TrimSpace(text) != "" {
		v, err := jinja.FromJSON([]byte(text))
		if err != nil {
			return nil, invalidf("--payload is not JSON: %v", err)
		}
		d, ok := v.(*jinja.Dict)
		if !ok {
			return nil, invalidf("--payload must be a JSON object such as '{\"name\": \"x\"}'")
		}
		for k, v := range d.All() {
			out.Set(k, v)
		}
	}
	for _, kv := range f.Set {
		k, text, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, invalidf("--set %q: want KEY=VALUE", kv)
		}
		var v any = text
		if parsed, err := jinja.FromJSON([]byte(text)); err == nil {
			v = parsed
		}
		out.Set(k, v)
	}
	if out.Len() == 0 {
		return nil, nil
	}
	return jinja.ToJSON(out)
}
