package control

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/store"
)

// resourceKinds are what the catalog holds.
var resourceKinds = []string{"playbook", "credential", "mcp", "agent", "memory", "subscription"}

// RegisterRequest is a resource to be stored under the next version of its path.
type RegisterRequest struct {
	Content      string // YAML, or base64 of it
	ResourceType string // used when the document names no kind; empty = Playbook
	Path         string // stored under this one instead of the document's own
	// Permit refuses the path the document turns out to have; nil allows any.
	Permit func(path string) error
}

// Registration is a stored resource and what was noticed about it.
type Registration struct {
	Entry    store.Entry
	Problems playbook.Problems // warnings only: errors refuse the registration
}

// Register stores a new version of a resource. Invalid when the document is
// not YAML, names no path or an unknown kind, or is a playbook with errors;
// the message then lists all of them.
func (p *Plane) Register(ctx context.Context, r RegisterRequest) (Registration, error) {
	e, problems, err := readResource(r)
	if err != nil {
		return Registration{}, err
	}
	if r.Permit != nil {
		if err := r.Permit(e.Path); err != nil {
			return Registration{}, err
		}
	}
	e.CatalogID, e.CreatedAt = p.o.IDs(), p.now()
	if e, err = p.addEntry(ctx, e); err != nil {
		return Registration{}, storeError("add catalog entry", err)
	}
	return Registration{Entry: e, Problems: problems}, p.declare(ctx, e.Path)
}

// registerTries bounds how often a registration is tried against others of the
// same path that are first.
const registerTries = 10

func (p *Plane) addEntry(ctx context.Context, e store.Entry) (stored store.Entry, err error) {
	for range registerTries {
		if stored, err = p.store.AddEntry(ctx, e); event.CodeOf(err) != event.Conflict {
			return stored, err
		}
	}
	return stored, event.Errorf(event.Unavailable, "many others register %s at the same time: %w", e.Path, err)
}

// readResource makes an entry, without an id and a time, of a document.
func readResource(r RegisterRequest) (store.Entry, playbook.Problems, error) {
	text, doc, err := document(r.Content)
	if err != nil {
		return store.Entry{}, nil, err
	}
	e := store.Entry{Content: text}
	if e.Kind, err = resourceKind(doc, r.ResourceType); err != nil {
		return store.Entry{}, nil, err
	}
	if e.Path, e.Meta, err = metadata(doc); err != nil {
		return store.Entry{}, nil, err
	}
	if r.Path != "" {
		e.Path = cleanPath(r.Path)
	}
	if err := checkPath(e.Path); err != nil {
		return store.Entry{}, nil, err
	}
	if e.Payload, err = json.Marshal(doc); err != nil {
		return store.Entry{}, nil, event.Errorf(event.Invalid, "the document cannot be written as JSON: %w", err)
	}
	problems, err := checkPlaybook(&e)
	return e, problems, err
}

// checkPath refuses what cannot be the name of something: paths are stored in
// an index and printed in logs and on terminals.
func checkPath(path string) error {
	if len(path) > maxCatalogPath {
		return event.Errorf(event.Invalid, "the path has %d bytes, at most %d are accepted", len(path), maxCatalogPath)
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return event.Errorf(event.Invalid, "the path %q holds a control character: only printable ones are accepted", path)
	}
	return nil
}

// maxCatalogPath bounds the path of an entry: it is the key of an index.
const maxCatalogPath = 1024

// Validate says what registering a document would complain about, and stores
// nothing.
func Validate(content string) playbook.Problems {
	_, problems, err := readResource(RegisterRequest{Content: content})
	if err == nil {
		return problems
	}
	if listed, ok := errors.AsType[playbook.Problems](err); ok {
		return listed
	}
	problem := playbook.Problem{Severity: playbook.SeverityError, Code: "invalid", Line: 1, Col: 1, Message: err.Error()}
	if e, ok := errors.AsType[*event.Error](err); ok {
		problem.Message, problem.Remedy = e.Message, e.Remedy
		if e.Reason != "" {
			problem.Code = e.Reason
		}
	}
	return append(playbook.Problems{problem}, problems...)
}

// document reads content as YAML. It counts as base64 only when it decodes to
// text that is a YAML mapping.
func document(content string) (text string, doc map[string]any, err error) {
	if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(content)); err == nil && utf8.Valid(raw) {
		if doc, err := mapping(raw); err == nil {
			return string(raw), doc, nil
		}
	}
	doc, err = mapping([]byte(content))
	if err != nil {
		return "", nil, event.Errorf(event.Invalid, "the content is not a YAML document: %w", placed(content, err))
	}
	return content, doc, nil
}

// placed is the same complaint as a reader of playbooks makes it: with its
// place and what to do.
func placed(content string, err error) error {
	if _, problems := playbook.Parse("content", []byte(content)); problems.Err() != nil {
		return problems.Err()
	}
	return err
}

func mapping(raw []byte) (map[string]any, error) {
	var v any
	if err := yaml.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	doc, ok := plain(v).(map[string]any)
	if !ok {
		return nil, errors.New("it must be a mapping with kind and metadata")
	}
	return doc, nil
}

// plain makes what YAML knows and JSON does not expressible: keys become text,
// and so do numbers without a finite value.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plain(e)
		}
		return v
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[fmt.Sprint(k)] = plain(e)
		}
		return out
	case []any:
		for i, e := range v {
			v[i] = plain(e)
		}
		return v
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return v
}

func resourceKind(doc map[string]any, resourceType string) (string, error) {
	kind, _ := doc["kind"].(string)
	if kind == "" {
		kind = resourceType
	}
	if kind == "" {
		kind = "playbook"
	}
	lower := strings.ToLower(kind)
	if !slices.Contains(resourceKinds, lower) {
		return "", &event.Error{
			Code: event.Invalid, Reason: "unknown_kind", Message: fmt.Sprintf("unknown resource kind %q", kind),
			Remedy: "use one of " + strings.Join(resourceKinds, ", "),
		}
	}
	return lower, nil
}

// metadata reads the path and the labels.
func metadata(doc map[string]any) (path string, labels []byte, err error) {
	meta, ok := doc["metadata"].(map[string]any)
	if !ok {
		return "", nil, &event.Error{
			Code: event.Invalid, Reason: "missing_metadata", Message: "the document has no metadata",
			Remedy: "add metadata with a name and a path",
		}
	}
	if path, _ = meta["path"].(string); path == "" {
		path, _ = meta["name"].(string)
	}
	if path = cleanPath(path); path == "" {
		return "", nil, &event.Error{
			Code: event.Invalid, Reason: "missing_path", Message: "the document has neither metadata.path nor metadata.name",
			Remedy: "add metadata.path",
		}
	}
	if meta["labels"] == nil {
		return path, nil, nil
	}
	if labels, err = json.Marshal(meta["labels"]); err != nil {
		return "", nil, event.Errorf(event.Invalid, "metadata.labels cannot be written as JSON: %w", err)
	}
	return path, labels, nil
}

// checkPlaybook validates a playbook as far as starting it would.
func checkPlaybook(e *store.Entry) (playbook.Problems, error) {
	if e.Kind != "playbook" {
		return nil, nil
	}
	pb, problems := playbook.Parse(e.Path, []byte(e.Content))
	if err := problems.Err(); err != nil {
		return problems, invalidPlaybook(e.Path, err)
	}
	if _, err := engine.Compile(pb); err != nil {
		return problems, invalidPlaybook(e.Path, err)
	}
	return problems, nil
}

// EntryRef names a catalog entry: by id, or by path and version (0 = latest).
type EntryRef struct {
	CatalogID event.ID
	Path      string
	Version   int
}

// Entry returns one catalog entry. Invalid when the reference is empty,
// NotFound when nothing is there.
func (p *Plane) Entry(ctx context.Context, ref EntryRef) (store.Entry, error) {
	var e store.Entry
	var err error
	missing := event.Errorf(event.NotFound, "Playbook not found: %s", ref.Path)
	switch {
	case ref.CatalogID != 0:
		missing = event.Errorf(event.NotFound, "Catalog entry not found: %s", ref.CatalogID)
		e, err = p.store.Entry(ctx, ref.CatalogID)
	case ref.Path != "":
		e, err = p.store.EntryByPath(ctx, cleanPath(ref.Path), ref.Version)
	default:
		return store.Entry{}, event.Errorf(event.Invalid, "either path or catalog_id is required")
	}
	if errors.Is(err, store.ErrNotFound) {
		return store.Entry{}, missing
	}
	if err != nil {
		return store.Entry{}, storeError("read catalog entry", err)
	}
	return e, nil
}

// cleanPath is a catalog path as it is stored: authors and callers write it
// with and without slashes around it.
func cleanPath(path string) string { return strings.Trim(path, "/ ") }

// Entries lists catalog entries, newest first.
func (p *Plane) Entries(ctx context.Context, f store.EntryFilter) ([]store.Entry, error) {
	f.Kind, f.Path = strings.ToLower(f.Kind), cleanPath(f.Path)
	entries, err := p.store.ListEntries(ctx, f)
	if err != nil {
		return nil, storeError("list catalog entries", err)
	}
	return entries, nil
}
