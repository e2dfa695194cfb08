package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"
)

// outputFlags say in which form a command shows what it found.
type outputFlags struct {
	Output    string `short:"o" help:"Form of the output: table, json, yaml, or name for the names alone." enum:"table,json,yaml,name" default:"table" placeholder:"FORM"`
	NoHeaders bool   `help:"Leave out the heading of tables."`
	JSON      bool   `short:"j" help:"The same as --output json." hidden:""`
}

// form is the chosen one.
func (f outputFlags) form() string {
	if f.JSON {
		return "json"
	}
	return orText(f.Output, "table")
}

// machine tells whether a program reads the output.
func (f outputFlags) machine() bool { return f.form() == "json" || f.form() == "yaml" }

// print writes a value for programs.
func (f outputFlags) print(env *Env, value any) error {
	if f.form() == "yaml" {
		return printYAML(env, value)
	}
	return printJSON(env, value)
}

// list shows rows: as a table, as their names, or as the value they come from.
func (f outputFlags) list(env *Env, value any, t *table) error {
	switch f.form() {
	case "json":
		return printJSON(env, value)
	case "yaml":
		return printYAML(env, value)
	case "name":
		for _, name := range t.names {
			fmt.Fprintln(env.Stdout, name)
		}
		return nil
	}
	t.bare = f.NoHeaders
	return t.print(env)
}

// object shows one thing: as it is, by its name, or as text for people.
func (f outputFlags) object(env *Env, value any, name string, text func() error) error {
	switch f.form() {
	case "json":
		return printJSON(env, value)
	case "yaml":
		return printYAML(env, value)
	case "name":
		_, err := fmt.Fprintln(env.Stdout, name)
		return err
	}
	return text()
}

// done tells that something was done to the thing of a name.
func (f outputFlags) done(env *Env, status, name, text string) error {
	value := struct {
		Status string `json:"status"`
		Name   string `json:"name"`
	}{status, name}
	return f.object(env, value, name, func() error {
		_, err := fmt.Fprintln(env.Stdout, text)
		return err
	})
}

// report shows what a server or a check tells at length: as it is, by the names
// of what it is about, or as text for people.
func (f outputFlags) report(env *Env, value any, names []string, text func() error) error {
	if f.form() != "name" {
		return f.object(env, value, "", text)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			fmt.Fprintln(env.Stdout, name)
		}
		seen[name] = true
	}
	return nil
}

// printJSON writes one line for programs, and indented text on a terminal.
func printJSON(env *Env, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if env.Terminal {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err := env.Stdout.Write(b.Bytes())
	return err
}

// printLine writes one line of JSON wherever it goes.
func printLine(env *Env, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = fmt.Fprintln(env.Stdout, string(b))
	return err
}

// printYAML writes what printJSON would as YAML, with its keys in their order.
func printYAML(env *Env, v any) error {
	src, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil { // every JSON is YAML
		return fmt.Errorf("encode: %w", err)
	}
	unfold(&doc)
	enc := yaml.NewEncoder(env.Stdout)
	enc.SetIndent(2)
	return errors.Join(enc.Encode(&doc), enc.Close())
}

// unfold takes the look of JSON off a document. Texts stay quoted only where
// they would be read as something else.
func unfold(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.SetString(n.Value)
	}
	for _, child := range n.Content {
		unfold(child)
	}
}
