package secret

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	maxName        = 256
	maxType        = 64
	maxDescription = 4096
	maxTags        = 64
	maxData        = 1 << 20
)

// Registration is a credential as its owner hands it over.
type Registration struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Data        json.RawMessage `json:"data"`
	Meta        json.RawMessage `json:"meta"`
	Tags        []string        `json:"tags"`
	Description string          `json:"description"`
}

// Put stores a credential by its name, over one that exists; created tells
// which. What comes back holds no secret.
func (s *Service) Put(ctx context.Context, r Registration, use Use) (c store.Credential, created bool, err error) {
	if err := r.check(); err != nil {
		return store.Credential{}, false, err
	}
	plain := compact(r.Data)
	defer clear(plain)
	sealed, err := s.o.Keys.Seal(CredentialRow(r.Name), plain)
	if err != nil {
		return store.Credential{}, false, err
	}
	now := s.o.Clock().UTC()
	c, created, err = s.o.Store.PutCredential(ctx, store.Credential{
		ID: s.o.IDs(), Name: r.Name, Type: r.Type, Sealed: sealed, Meta: presence(r.Meta), Tags: r.Tags, Description: r.Description,
		CreatedAt: now, UpdatedAt: now,
	})
	if err != nil {
		return store.Credential{}, false, err
	}
	use.Operation = OpUpdate
	if created {
		use.Operation = OpCreate
	}
	err = s.Record(ctx, use, c.Name, OutcomeOK, s.o.Keys.Version(c.Sealed))
	return withoutSecret(c), created, err
}

func compact(doc json.RawMessage) []byte {
	var out bytes.Buffer
	if err := json.Compact(&out, doc); err != nil {
		return bytes.Clone(doc) // check has read it, so this does not happen
	}
	return out.Bytes()
}

func presence(doc json.RawMessage) []byte {
	if string(bytes.TrimSpace(doc)) == "null" {
		return nil
	}
	return doc
}

func withoutSecret(c store.Credential) store.Credential {
	c.Sealed = ""
	return c
}

// check refuses what could not be found or used later. The type is made lower
// case, as all look-ups expect it.
func (r *Registration) check() error {
	r.Type = strings.ToLower(strings.TrimSpace(r.Type))
	switch {
	case r.Name == "":
		return event.Errorf(event.Invalid, "name: a credential needs one")
	case len(r.Name) > maxName:
		return event.Errorf(event.Invalid, "name: longer than %d bytes", maxName)
	case !printable(r.Name) || strings.TrimSpace(r.Name) != r.Name:
		return event.Errorf(event.Invalid, "name: must be printable text without spaces around it")
	case r.Type == "":
		return event.Errorf(event.Invalid, "type: say what the credential is for, such as postgres, bearer or api_key")
	case len(r.Type) > maxType || !printable(r.Type):
		return event.Errorf(event.Invalid, "type: must be printable text of at most %d bytes", maxType)
	case len(r.Description) > maxDescription || !utf8.ValidString(r.Description):
		return event.Errorf(event.Invalid, "description: must be text of at most %d bytes", maxDescription)
	case len(r.Tags) > maxTags:
		return event.Errorf(event.Invalid, "tags: more than %d", maxTags)
	case len(r.Data) > maxData:
		return event.Errorf(event.Limit, "data: larger than %d bytes", maxData)
	}
	for _, tag := range r.Tags {
		if tag == "" || len(tag) > maxName || !printable(tag) {
			return event.Errorf(event.Invalid, "tags: each must be printable text of at most %d bytes", maxName)
		}
	}
	if meta := presence(r.Meta); len(meta) > 0 && !json.Valid(meta) {
		return event.Errorf(event.Invalid, "meta: not JSON")
	}
	var data map[string]json.RawMessage
	if err := json.Unmarshal(r.Data, &data); err != nil || data == nil {
		return event.Errorf(event.Invalid, "data: want an object with the fields of the credential")
	}
	return checkKind(r.Type, data)
}

func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// Find returns what may be shown of a credential, by id or name.
func (s *Service) Find(ctx context.Context, identifier string) (store.Credential, error) {
	c, err := s.find(ctx, identifier)
	return withoutSecret(c), err
}

// find takes a number for an id first, and for a name when there is no such id.
func (s *Service) find(ctx context.Context, identifier string) (store.Credential, error) {
	if id, err := strconv.ParseInt(identifier, 10, 64); err == nil && id > 0 {
		c, err := s.o.Store.CredentialByID(ctx, event.ID(id))
		if err == nil || !errors.Is(err, store.ErrNotFound) {
			return c, err
		}
	}
	c, err := s.o.Store.Credential(ctx, identifier)
	if errors.Is(err, store.ErrNotFound) {
		return store.Credential{}, &event.Error{
			Code: event.NotFound, Message: "there is no credential " + strconv.Quote(short(identifier)),
			Remedy: "register it, or look at the list of credentials for its name", Err: err,
		}
	}
	return c, err
}

// List returns what may be shown of credentials, newest first.
func (s *Service) List(ctx context.Context, f store.CredentialFilter) ([]store.Credential, error) {
	f.Type = strings.ToLower(strings.TrimSpace(f.Type))
	all, err := s.o.Store.ListCredentials(ctx, f)
	for i := range all {
		all[i] = withoutSecret(all[i])
	}
	return all, err
}

// Open decrypts a credential for a use that is written down, as are its
// refusals. The caller has to see to it that the use is allowed.
func (s *Service) Open(ctx context.Context, identifier string, use Use) (store.Credential, json.RawMessage, error) {
	use = orDefault(use, OpGet)
	c, err := s.find(ctx, identifier)
	if err != nil {
		outcome := OutcomeFailed
		if event.CodeOf(err) == event.NotFound {
			outcome = OutcomeNotFound
		}
		return store.Credential{}, nil, errors.Join(err, s.Record(ctx, use, identifier, outcome, ""))
	}
	version := s.o.Keys.Version(c.Sealed)
	plain, err := s.o.Keys.Open(CredentialRow(c.Name), c.Sealed)
	if err != nil {
		return store.Credential{}, nil, errors.Join(err, s.Record(ctx, use, c.Name, OutcomeUnreadable, version))
	}
	if err := s.Record(ctx, use, c.Name, OutcomeOK, version); err != nil {
		clear(plain)
		return store.Credential{}, nil, err
	}
	return withoutSecret(c), plain, nil
}

// Checked is what a check tells of a credential.
type Checked struct {
	Credential store.Credential
	Fields     []string
	KeyVersion string // of the key it is wrapped with
}

// Check tells whether a credential could be opened and used, and shows it to
// nobody.
func (s *Service) Check(ctx context.Context, identifier string, use Use) (Checked, error) {
	use.Operation = OpCheck
	c, err := s.find(ctx, identifier)
	if err != nil {
		return Checked{}, err
	}
	out := Checked{Credential: withoutSecret(c), KeyVersion: s.o.Keys.Version(c.Sealed)}
	plain, err := s.o.Keys.Open(CredentialRow(c.Name), c.Sealed)
	if err != nil {
		return Checked{}, errors.Join(err, s.Record(ctx, use, c.Name, OutcomeUnreadable, out.KeyVersion))
	}
	defer clear(plain)
	if out.Fields, err = fieldsOf(c.Type, plain); err != nil {
		return Checked{}, err
	}
	return out, s.Record(ctx, use, c.Name, OutcomeOK, out.KeyVersion)
}

// Delete removes a credential.
func (s *Service) Delete(ctx context.Context, identifier string, use Use) (store.Credential, error) {
	use.Operation = OpDelete
	c, err := s.find(ctx, identifier)
	if err == nil {
		err = s.o.Store.DeleteCredential(ctx, c.ID)
	}
	if err != nil {
		return store.Credential{}, err
	}
	return withoutSecret(c), s.Record(ctx, use, c.Name, OutcomeOK, "")
}
