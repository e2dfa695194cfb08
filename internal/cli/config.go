package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// config is the file of contexts. Keys it does not know are kept as they are.
type config struct {
	Current  string              `yaml:"current_context,omitempty" json:"current_context,omitempty"`
	Contexts map[string]*profile `yaml:"contexts,omitempty" json:"contexts,omitempty"`
	Other    map[string]any      `yaml:",inline" json:"-"`

	file string
}

// profile is one context: a server and how to be known there.
type profile struct {
	ServerURL string `yaml:"server_url,omitempty"`
	Runtime   string `yaml:"runtime,omitempty"` // auto, local or distributed
	Token     string `yaml:"token,omitempty"`
	Session   string `yaml:"gateway_session_token,omitempty"`
	TLSCA     string `yaml:"tls_ca,omitempty"`
	TLSCert   string `yaml:"tls_cert,omitempty"`
	TLSKey    string `yaml:"tls_key,omitempty"`

	Auth0Domain   string `yaml:"gateway_auth0_domain,omitempty"`
	Auth0ClientID string `yaml:"gateway_auth0_client_id,omitempty"`
	Auth0Redirect string `yaml:"gateway_auth0_redirect_uri,omitempty"`
	Auth0Audience string `yaml:"gateway_auth0_audience,omitempty"`
	Auth0Secret   string `yaml:"gateway_auth0_client_secret,omitempty"`

	Other map[string]any `yaml:",inline"`
}

// secret tells whether the context holds something others must not read.
func (p *profile) secret() bool { return p.Token != "" || p.Session != "" || p.Auth0Secret != "" }

// configFile is where the contexts are kept; "" when there is no home for them.
func configFile() (string, error) {
	if err := refuseBlank("NOETL_CONFIG"); err != nil {
		return "", err
	}
	if file := os.Getenv("NOETL_CONFIG"); file != "" {
		return file, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", nil // no home: no contexts, and nowhere to save one
	}
	usual := filepath.Join(home, ".noetl", "config.yaml")
	for _, name := range []string{"config.yaml", "config.yml", "config.json"} {
		if file := filepath.Join(home, ".noetl", name); isFile(file) {
			return file, nil
		}
	}
	return usual, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// readConfig reads the contexts. Without a file there are none; a file that
// cannot be understood is an error that says where.
func readConfig(env *Env) (*config, error) {
	file, err := configFile()
	if err != nil {
		return nil, err
	}
	c := &config{Contexts: map[string]*profile{}, file: file}
	src, err := os.ReadFile(file)
	switch {
	case file == "" || errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, invalidf("read the configuration: %v", err)
	}
	if err := yaml.Unmarshal(src, c); err != nil {
		return nil, invalidf("%s is not a configuration: %s: mend it, or move it away and add contexts with: noetl context add NAME --server-url URL",
			file, yamlComplaint(err))
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.warn(env)
	return c, nil
}

// yamlPlace is how the YAML reader writes a place.
var yamlPlace = regexp.MustCompile(`L(\d+)\.C(\d+)(-L\d+\.C\d+)?`)

// yamlComplaint is what is wrong with a document, with the place in words.
func yamlComplaint(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return yamlPlace.ReplaceAllString(strings.TrimPrefix(text, "go-yaml load error in parser "), "line $1, column $2")
}

// check refuses what would be misread later.
func (c *config) check() error {
	for _, name := range c.names() {
		p := c.Contexts[name]
		if p == nil {
			p = &profile{}
			c.Contexts[name] = p
		}
		if !slices.Contains([]string{"", "auto", "local", "distributed"}, p.Runtime) {
			return invalidf("%s: contexts.%s.runtime is %q: want auto, local or distributed", c.file, name, p.Runtime)
		}
	}
	if c.Contexts == nil {
		c.Contexts = map[string]*profile{}
	}
	if c.Current != "" && c.Contexts[c.Current] == nil {
		return invalidf("%s: current_context is %q, which is not one of its contexts%s: choose one with: noetl context use NAME",
			c.file, c.Current, nearest(c.Current, c.names()))
	}
	return nil
}

// warn tells of secrets that others on this machine can read.
func (c *config) warn(env *Env) {
	info, err := os.Stat(c.file)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return
	}
	for _, p := range c.Contexts {
		if p.secret() {
			fmt.Fprintf(env.Stderr, "warning: %s holds a token and others can read it: chmod 600 %s\n", c.file, c.file)
			return
		}
	}
}

func (c *config) names() []string { return slices.Sorted(maps.Keys(c.Contexts)) }

// find is the context of a name; the current one for "", nil when there is none.
func (c *config) find(name string) (*profile, error) {
	if name == "" {
		return c.Contexts[c.Current], nil
	}
	p := c.Contexts[name]
	if p == nil {
		return nil, invalidf("there is no context %q%s: noetl context list shows all of them", name, nearest(name, c.names()))
	}
	return p, nil
}

// save replaces the file as a whole, readable by its owner alone.
func (c *config) save() error {
	if c.file == "" {
		return invalidf("there is no home directory to keep contexts in: set HOME, or NOETL_CONFIG to a file")
	}
	out, err := c.encode()
	if err != nil {
		return err
	}
	dir := filepath.Dir(c.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("save the configuration: %w", err)
	}
	tmp, err := os.CreateTemp(dir, ".config-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("save the configuration: %w", err)
	}
	_, err = tmp.Write(out)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), c.file)
	}
	if err != nil {
		return fmt.Errorf("save the configuration: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}

func (c *config) encode() ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(c), enc.Close()); err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	if filepath.Ext(c.file) != ".json" {
		return b.Bytes(), nil
	}
	var v map[string]any
	if err := yaml.Unmarshal(b.Bytes(), &v); err != nil {
		return nil, fmt.Errorf("encode the configuration: %w", err)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	return append(out, '\n'), err
}
