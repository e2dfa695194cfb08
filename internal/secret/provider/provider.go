// Package provider reads secrets where organisations keep them: Vault,
// Kubernetes, the secret managers of the clouds, files and the environment. It
// also mints tokens at endpoints that speak OAuth 2. Each provider speaks the
// service's HTTP interface itself.
//
// It must not know what a keychain is, who asks or what the values are for; it
// writes no value into an error or a log.
package provider

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/event"
)

// Value is what a reference stands for: text, or an object of several fields.
type Value struct {
	Text      string
	Object    json.RawMessage // instead of Text
	ExpiresAt time.Time       // when its issuer takes it back; zero when it does not say
}

// JSON is the value as JSON.
func (v Value) JSON() json.RawMessage {
	if len(v.Object) > 0 {
		return v.Object
	}
	raw, _ := json.Marshal(v.Text) // text always has a JSON form
	return raw
}

// Options of one fetch.
type Options struct {
	// Login, when given, is the data of the credential that authenticates to the
	// provider, instead of what the process itself was given.
	Login map[string]any
	// Region of the secret where the reference names none.
	Region string
}

// text is the first of names that the login has.
func (o Options) text(names ...string) string {
	for _, name := range names {
		if s, ok := o.Login[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// Provider fetches secrets by reference. Errors are coded: NotFound when there
// is no such secret, Forbidden when access is refused, Unavailable when trying
// again may help, Invalid when reference or settings are wrong.
type Provider interface {
	Fetch(ctx context.Context, ref string, o Options) (Value, error)
}

// names are the providers under each of their names.
var names = map[string]string{
	"env": "env", "file": "file", "vault": "vault", "hashicorp_vault": "vault", "k8s": "k8s", "kubernetes": "k8s",
	"aws": "aws", "aws_sm": "aws", "aws_sts": "aws_sts", "aws_iam": "aws_sts",
	"gcp": "gcp", "google": "gcp", "google_secret_manager": "gcp", "gcp_iam": "gcp_iam",
	"azure": "azure", "azure_kv": "azure", "azure_oauth": "azure_oauth", "azure_aad": "azure_oauth",
}

// Canonical is the one name of a provider; "" when it is unknown.
func Canonical(id string) string { return names[strings.ToLower(strings.TrimSpace(id))] }

// Known lists the providers by their one name.
func Known() []string {
	var list []string
	for _, id := range names {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	slices.Sort(list)
	return list
}

// Settings of a Set; zero fields get the defaults named beside them.
type Settings struct {
	Getenv func(string) string // os.Getenv
	Clock  func() time.Time    // time.Now
	// Dial connects to addresses that a playbook names; the usual guard against
	// reaching the metadata of the machine when nil. The providers' own addresses
	// come from whoever runs the process and are not held to it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Set is all providers of a process. They are made when first asked for and
// keep their connections and tokens from then on.
type Set struct {
	s     Settings
	own   *http.Client // to the services themselves
	asked *http.Client // to where playbooks say

	mu     sync.Mutex // guards made
	made   map[string]Provider
	tokens tokens
}

// NewSet makes the providers.
func NewSet(s Settings) *Set {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	if s.Clock == nil {
		s.Clock = time.Now
	}
	if s.Dial == nil {
		s.Dial = (&egress.Policy{}).DialContext
	}
	return &Set{
		s: s, made: map[string]Provider{}, tokens: tokens{clock: s.Clock},
		own:   &http.Client{Transport: transport((&net.Dialer{Timeout: 5 * time.Second}).DialContext), CheckRedirect: stay},
		asked: &http.Client{Transport: transport(s.Dial), CheckRedirect: stay},
	}
}

// Close drops idle connections.
func (s *Set) Close() error {
	s.own.CloseIdleConnections()
	s.asked.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.made {
		if c, ok := p.(interface{ close() }); ok {
			c.close()
		}
	}
	return nil
}

// Fetch asks a provider, by any of its names. Invalid when there is none.
func (s *Set) Fetch(ctx context.Context, id, ref string, o Options) (Value, error) {
	p, err := s.provider(id)
	if err != nil {
		return Value{}, err
	}
	return p.Fetch(ctx, strings.TrimSpace(ref), o)
}

func (s *Set) provider(id string) (Provider, error) {
	name := Canonical(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.made[name]; p != nil {
		return p, nil
	}
	var p Provider
	switch name {
	case "env":
		p = envProvider{s.s.Getenv}
	case "file":
		p = fileProvider{s.s.Getenv}
	case "vault":
		p = newVault(s)
	case "k8s":
		p = newKubernetes(s)
	case "aws":
		p = &awsSecrets{s}
	case "aws_sts":
		p = &awsSTS{s}
	case "gcp":
		p = &gcpSecrets{s}
	case "gcp_iam":
		p = &gcpIAM{s}
	case "azure":
		p = &azureVault{s}
	case "azure_oauth":
		p = &azureOAuth{s}
	default:
		return nil, &event.Error{
			Code: event.Invalid, Message: "there is no secret provider " + quote(id), Reason: "unknown_provider",
			Remedy: "use one of " + strings.Join(Known(), ", "),
		}
	}
	s.made[name] = p
	return p, nil
}

// first is the first setting that is given.
func (s *Set) first(names ...string) string {
	for _, name := range names {
		if v := strings.TrimSpace(s.s.Getenv(name)); v != "" {
			return v
		}
	}
	return ""
}

// pick takes one field of a secret that is an object: the one asked for, or the
// only one.
func pick(provider, ref, key string, fields map[string]any) (Value, error) {
	if key == "" {
		if len(fields) != 1 {
			return Value{}, badRef(provider, ref, "the secret has several fields: say which")
		}
		for key = range fields {
		}
	}
	v, ok := fields[key]
	if !ok {
		return Value{}, noSecret(provider, ref, "the secret has no field "+quote(key))
	}
	if text, ok := v.(string); ok {
		return Value{Text: text}, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return Value{}, event.Errorf(event.Internal, "encode a field of secret %s: not JSON", quote(ref))
	}
	return Value{Object: raw}, nil
}

// field takes a field out of a secret whose text is a JSON object.
func field(provider, ref, key, text string) (Value, error) {
	if key == "" {
		return Value{Text: text}, nil
	}
	var fields map[string]any
	if json.Unmarshal([]byte(text), &fields) != nil {
		return Value{}, badRef(provider, ref, "the secret is no JSON object, so it has no fields")
	}
	return pick(provider, ref, key, fields)
}

// cutKey splits a reference at its last #.
func cutKey(ref string) (name, key string) {
	if i := strings.LastIndexByte(ref, '#'); i >= 0 {
		return ref[:i], ref[i+1:]
	}
	return ref, ""
}
