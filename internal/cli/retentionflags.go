package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/node"
)

// retentionFlags say how long a server keeps executions that have ended.
type retentionFlags struct {
	Retention         string        `help:"How long ended executions are kept, such as 30d or 30d,failed=90d;team/a:completed=7d,keep=10. Default: for ever." env:"NOETL_RETENTION" placeholder:"RULES"`
	RetentionFile     string        `help:"The same as a YAML or JSON file." env:"NOETL_RETENTION_FILE" placeholder:"FILE"`
	RetentionInterval time.Duration `help:"How often executions whose time is over are looked for." default:"10m" env:"NOETL_RETENTION_INTERVAL" placeholder:"DURATION"`
	RetentionMax      int           `help:"Executions that are removed at a time." default:"20000" env:"NOETL_RETENTION_MAX" placeholder:"N"`
	RetentionArchive  string        `help:"Directory executions are written to before they are removed." env:"NOETL_RETENTION_ARCHIVE" placeholder:"DIR"`
}

func (f *retentionFlags) options() (node.Retention, error) {
	if err := refuseBlank("NOETL_RETENTION", "NOETL_RETENTION_FILE", "NOETL_RETENTION_INTERVAL", "NOETL_RETENTION_MAX", "NOETL_RETENTION_ARCHIVE"); err != nil {
		return node.Retention{}, err
	}
	out := node.Retention{Every: f.RetentionInterval, PerRun: f.RetentionMax, Archive: f.RetentionArchive}
	switch {
	case f.Retention != "" && f.RetentionFile != "":
		return out, invalidf("--retention and --retention-file both say how long executions are kept: give one")
	case f.RetentionInterval < time.Second:
		return out, invalidf("--retention-interval %s is too short (at least 1s)", f.RetentionInterval)
	case f.RetentionMax < 1:
		return out, invalidf("--retention-max %d: want a number above 0", f.RetentionMax)
	}
	var err error
	switch {
	case f.Retention != "":
		out.Policy, err = control.ParseRetention(f.Retention)
	case f.RetentionFile != "":
		out.Policy, err = retentionFile(f.RetentionFile)
	}
	return out, err
}

// retentionDocument is a policy as a file has it.
type retentionDocument struct {
	Default *retentionEntry  `yaml:"default"`
	Rules   []retentionEntry `yaml:"rules"`
}

type retentionEntry struct {
	Path      string `yaml:"path"`
	All       string `yaml:"all"`
	Completed string `yaml:"completed"`
	Failed    string `yaml:"failed"`
	Cancelled string `yaml:"cancelled"`
	KeepLast  string `yaml:"keep_last"`
}

// path is the path of a rule as paths are written: without slashes around it.
func (e retentionEntry) path() string { return strings.Trim(strings.TrimSpace(e.Path), "/") }

func (e retentionEntry) rule() (control.RetentionRule, error) {
	r := control.RetentionRule{Path: e.path(), Ages: map[string]time.Duration{}}
	for _, said := range [][2]string{{"completed=", e.Completed}, {"failed=", e.Failed}, {"cancelled=", e.Cancelled}, {"keep=", e.KeepLast}, {"", e.All}} {
		if said[1] == "" {
			continue
		}
		if err := r.Say(said[0] + said[1]); err != nil {
			return r, err
		}
	}
	return r, nil
}

// retentionFile reads a policy; JSON is YAML, too.
func retentionFile(name string) (control.RetentionPolicy, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, invalidf("--retention-file: %v", err)
	}
	defer func() { _ = f.Close() }()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, invalidf("--retention-file: %v", err)
	}
	if len(text) > most {
		return nil, invalidf("--retention-file %s is larger than 1 MiB: write fewer rules", name)
	}
	var doc retentionDocument
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, invalidf("--retention-file %s is empty: say default: or rules:", name)
		}
		return nil, invalidf("--retention-file %s: %v", name, err)
	}
	var policy control.RetentionPolicy
	entries := doc.Rules
	if doc.Default != nil {
		if doc.Default.Path != "" {
			return nil, invalidf("--retention-file %s: the default is for all paths: write path %s as a rule", name, doc.Default.Path)
		}
		entries = append([]retentionEntry{*doc.Default}, entries...)
	}
	for i, e := range entries {
		if e.path() == "" && (doc.Default == nil || i > 0) {
			number := i + 1
			if doc.Default != nil {
				number = i
			}
			return nil, invalidf("--retention-file %s: rule %d names no path: write what is for everything as default", name, number)
		}
		rule, err := e.rule()
		if err != nil {
			return nil, fmt.Errorf("--retention-file %s: %w", name, err)
		}
		policy = append(policy, rule)
	}
	if len(policy) == 0 {
		return nil, invalidf("--retention-file %s says nothing: say default: or rules:", name)
	}
	return policy, policy.Check()
}
