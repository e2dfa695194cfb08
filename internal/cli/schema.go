package cli

import "github.com/noetl/noetl-go/internal/playbook"

type schemaCommand struct{}

// Run prints the language as a JSON Schema, for editors.
func (schemaCommand) Run(env *Env) error {
	_, err := env.Stdout.Write(playbook.JSONSchema())
	return err
}
