package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/client"
)

// credentialCommand is all about credentials.
type credentialCommand struct {
	List   credentialListCommand   `cmd:"" help:"List credentials; what is secret in them is not shown."`
	Get    credentialGetCommand    `cmd:"" help:"Show a credential."`
	Delete credentialDeleteCommand `cmd:"" help:"Remove a credential."`
	Put    credentialPutCommand    `cmd:"" aliases:"register" help:"Store a credential."`
}

// getCommand is the older way to ask for one.
type getCommand struct {
	Credential credentialGetCommand `cmd:"" help:"Show a credential."`
}

type credentialPutCommand struct {
	serverFlags
	File        []string `short:"f" help:"YAML or JSON file with name, type, data and optionally tags, description and meta; - is standard input." placeholder:"FILE"`
	Directory   string   `short:"d" help:"Directory; every .yaml, .yml and .json below it is a credential." placeholder:"DIR"`
	Name        string   `arg:"" optional:"" help:"Name, when the fields come from --data-file or --data."`
	Type        string   `help:"Type, such as postgres or bearer." placeholder:"TYPE"`
	DataFile    string   `help:"File with the fields alone, as a YAML or JSON object; - is standard input." placeholder:"FILE"`
	Data        string   `help:"The fields as a JSON object. Others on this machine can see a command line: prefer --data-file." placeholder:"JSON"`
	Tag         []string `help:"Tag; may be repeated." placeholder:"TAG"`
	Description string   `help:"What it is for." placeholder:"TEXT"`
}

// Run stores the credentials that are given.
func (c *credentialPutCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	if c.Name == "" && c.Data == "" && c.DataFile == "" {
		return registerCredentials(ctx, env, cl, c.File, c.Directory)
	}
	switch {
	case len(c.File) > 0 || c.Directory != "":
		return invalidf("give either files with -f, or a name with --type and --data-file")
	case c.Name == "" || c.Type == "":
		return invalidf("a credential needs a name and a --type")
	case (c.Data == "") == (c.DataFile == ""):
		return invalidf("give the fields with --data-file FILE (- is standard input), or with --data JSON")
	}
	var data json.RawMessage
	if c.Data != "" {
		fmt.Fprintln(env.Stderr, "warning: --data puts the secret on the command line, where others can see it and the shell may keep it; prefer --data-file")
		data = json.RawMessage(c.Data)
	} else if data, err = readDocument(env, c.DataFile); err != nil {
		return err
	}
	return putCredential(ctx, env, cl, client.CredentialRequest{Name: c.Name, Type: c.Type, Data: data, Tags: c.Tag, Description: c.Description})
}

func putCredential(ctx context.Context, env *Env, cl *client.Client, r client.CredentialRequest) error {
	if !json.Valid(r.Data) {
		return invalidf("the fields of credential %s are not a JSON object", r.Name)
	}
	stored, err := cl.PutCredential(ctx, r)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "registered credential %s of type %s (id %s)\n", stored.Name, stored.Type, stored.ID)
	return nil
}

// registerCredentials stores the credentials of files and of a directory. All
// are tried, the first failure decides the exit code.
func registerCredentials(ctx context.Context, env *Env, cl *client.Client, files []string, dir string) error {
	files = slices.Clone(files)
	if dir != "" {
		found, err := filesBelow(dir, ".yaml", ".yml", ".json")
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return invalidf("nothing to register: give files with -f FILE or a directory with -d DIR")
	}
	return tryAll(env, files, func(file string) error {
		r, err := readCredential(env, file)
		if err != nil {
			return err
		}
		return putCredential(ctx, env, cl, r)
	})
}

// readCredential reads {name, type, data, …}. No error repeats what is in it.
func readCredential(env *Env, file string) (client.CredentialRequest, error) {
	var r client.CredentialRequest
	doc, err := readDocument(env, file)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(doc, &r); err != nil {
		return r, invalidf("want name, type and data, and optionally tags, description and meta")
	}
	for field, v := range map[string]string{"name": r.Name, "type": r.Type, "data": string(r.Data)} {
		if v == "" || v == "null" {
			return r, invalidf("%s is missing: want name, type and data", field)
		}
	}
	return r, nil
}

// readDocument is a YAML or JSON object as JSON.
func readDocument(env *Env, file string) (json.RawMessage, error) {
	var (
		src []byte
		err error
	)
	if file == "-" {
		src, err = io.ReadAll(env.Stdin)
	} else {
		src, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, invalidf("%v", err)
	}
	if json.Valid(src) {
		return src, nil
	}
	var doc map[string]any
	if err := yaml.Unmarshal(src, &doc); err != nil || doc == nil {
		return nil, invalidf("%s is not a YAML or JSON object", file)
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return nil, invalidf("%s has keys that are not text", file)
	}
	return out, nil
}

// filesBelow are the files of a directory with one of the extensions.
func filesBelow(dir string, extensions ...string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains(extensions, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, invalidf("read directory: %v", err)
	}
	return files, nil
}

type credentialListCommand struct {
	serverFlags
	Type  string `help:"Only credentials of this type." placeholder:"TYPE"`
	Query string `short:"q" help:"Only those with this text in their name or description." placeholder:"TEXT"`
	outputFlags
}

// Run prints a table, newest first.
func (c *credentialListCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	found, err := cl.Credentials(ctx, c.Type, c.Query)
	if err != nil {
		return err
	}
	return c.list(env, found, credentialTable(env, found))
}

func credentialTable(env *Env, found []client.Credential) *table {
	t := newTable("NAME", "TYPE", "TAGS", "UPDATED", "DESCRIPTION")
	for _, e := range found {
		t.add(e.Name, e.Name, e.Type, strings.Join(e.Tags, ","), env.moment(e.UpdatedAt), oneLine(e.Description, 60))
	}
	return t
}

type credentialGetCommand struct {
	serverFlags
	Name        string `arg:"" help:"Name or id."`
	IncludeData bool   `help:"Show what is secret in it. Needs the internal token (NOETL_INTERNAL_API_TOKEN), and is written down at the server." default:"false" negatable:""`
	outputFlags
}

// Run prints a credential, as JSON unless told otherwise: it has no table.
func (c *credentialGetCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.internalClient()
	if err != nil {
		return err
	}
	found, err := cl.Credential(ctx, c.Name, c.IncludeData)
	if err != nil {
		return err
	}
	return c.object(env, found, found.Name, func() error { return printJSON(env, found) })
}

type credentialDeleteCommand struct {
	serverFlags
	Name string `arg:"" help:"Name or id."`
	outputFlags
}

// Run removes a credential.
func (c *credentialDeleteCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	if err := cl.DeleteCredential(ctx, c.Name); err != nil {
		return err
	}
	return c.done(env, "deleted", c.Name, "deleted credential "+c.Name)
}
