// Package result keeps the values that are too large for the log, of any size,
// without ever holding one whole: small ones in the rows of the store, larger
// ones compressed in a tier made for bytes. It must not know what the values
// mean, nor when an execution has ended.
package result

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Tier is a place for bytes under keys. Keys are paths of letters, digits, dots
// and dashes.
type Tier interface {
	// Name is what playbooks call it.
	Name() string
	// Put stores all that r gives. Before it has returned nil nothing can be read,
	// and what a failed one left behind goes with Delete.
	Put(ctx context.Context, key string, r io.Reader) error
	// Open reads length bytes from offset on.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	// Delete removes what is there, of unfinished puts too. Nothing is no error.
	Delete(ctx context.Context, key string) error
}

// The defaults of Options.
const (
	DefaultMaxBytes = 4 << 30
	inlineLimit     = 256 << 10
	dbLimit         = 8 << 20
	abandonAfter    = 24 * time.Hour
	cleanUpTime     = 30 * time.Second
	maxName         = 512 // bytes; references are keys of an index
)

// Options configure a Service. Store, IDs and Now are required.
type Options struct {
	Store store.Results
	IDs   func() event.ID
	Now   func() time.Time
	Tiers []Tier // beside the store itself
	// Large is the tier of values beyond DBLimit whose author chose none; "" is
	// the store.
	Large    string
	MaxBytes int64 // 4 GiB: of one value
	DBLimit  int64 // 8 MiB: what stays in the store when Large is another tier
}

// Service puts values aside and finds them again. It is safe for concurrent use.
type Service struct {
	o     Options
	tiers map[string]Tier
}

// New makes a service. A Large that is no tier is an error.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.IDs == nil || o.Now == nil {
		return nil, errors.New("result: Store, IDs and Now are required")
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.DBLimit <= 0 {
		o.DBLimit = dbLimit
	}
	if o.Large == "" {
		o.Large = store.TierDB
	}
	s := &Service{o: o, tiers: map[string]Tier{store.TierDB: &parts{o.Store}}}
	for _, t := range o.Tiers {
		s.tiers[t.Name()] = t
	}
	if s.tiers[o.Large] == nil {
		return nil, fmt.Errorf("result: large values are to be kept in %s, which is not configured", o.Large)
	}
	return s, nil
}

// kept is how a value is to be kept.
type kept struct {
	row  store.Result
	tier string // "" = by its size
}

// names of tiers in playbooks, those of other implementations included.
var tierNames = map[string]string{
	"": "", "auto": "", "db": store.TierDB, "postgres": store.TierDB, "memory": store.TierDB, "eventlog": store.TierDB,
	"nats": "nats", "kv": "nats", "object": "nats", "file": "file", "disk": "file", "s3": "s3", "gcs": "s3",
}

// plan reads the options of a put.
func (s *Service) plan(execution event.ID, o event.ResultOptions) (kept, error) {
	now := s.o.Now().UTC().Truncate(time.Microsecond)
	id := s.o.IDs()
	k := kept{row: store.Result{
		ExecutionID: execution, Name: o.Name, SourceStep: o.SourceStep, MediaType: strings.TrimSpace(o.MediaType), CreatedAt: now,
		Scope: o.Scope, Ref: event.ResultRef{Execution: execution, Name: o.Name, ID: id}.String(), Key: fmt.Sprintf("%d/%d.zst", execution, id),
	}}
	switch {
	case o.Name == "":
		return k, event.Errorf(event.Invalid, "name: a result needs a name, usually its step")
	case len(o.Name) > maxName:
		return k, event.Errorf(event.Invalid, "name: %d bytes are too long for the name of a result, at most %d are accepted", len(o.Name), maxName)
	case len(o.SourceStep) > maxName || len(k.row.MediaType) > maxName:
		return k, event.Errorf(event.Invalid, "source_step and media_type may have %d bytes at most", maxName)
	}
	if err := checkMedia(k.row.MediaType); err != nil {
		return k, err
	}
	switch o.Scope {
	case "", store.ScopeStep, store.ScopeExecution, store.ScopeWorkflow, store.ScopePermanent:
	default:
		return k, event.Errorf(event.Invalid, "scope: want step, execution, workflow or permanent, got %q", o.Scope)
	}
	ttl, forever, err := ParseTTL(o.TTL)
	switch {
	case err != nil:
		return k, err
	case forever:
		k.row.Scope = store.ScopePermanent
	case ttl > 0:
		k.row.ExpiresAt = now.Add(ttl)
	}
	k.tier, err = s.tierNamed(o.Store)
	return k, err
}

// checkMedia refuses what would break the header of an answer.
func checkMedia(media string) error {
	for _, c := range media {
		if c < ' ' || c > '~' {
			return event.Errorf(event.Invalid, "media_type: %q is none", media)
		}
	}
	if media != "" && !strings.Contains(media, "/") {
		return event.Errorf(event.Invalid, "media_type: want one like text/csv, got %q", media)
	}
	return nil
}

func (s *Service) tierNamed(name string) (string, error) {
	tier, known := tierNames[strings.ToLower(strings.TrimSpace(name))]
	switch {
	case !known:
		return "", event.Errorf(event.Invalid, "store: want auto, db, nats, file or s3, got %q", name)
	case tier != "" && s.tiers[tier] == nil:
		return "", &event.Error{
			Code: event.Invalid, Message: fmt.Sprintf("store: the server is not configured to keep results in %s", name),
			Remedy: "leave the choice to it with auto, or configure the server",
		}
	}
	return tier, nil
}

// ParseTTL reads how long a value is kept: a number with s, m, h, d or w, or
// forever. "" is neither.
func ParseTTL(text string) (ttl time.Duration, forever bool, err error) {
	text = strings.ToLower(strings.TrimSpace(text))
	bad := event.Errorf(event.Invalid, "ttl: want a time like 30m, 1h, 1d or forever, got %q", text)
	switch text {
	case "":
		return 0, false, nil
	case "forever":
		return 0, true, nil
	}
	for unit, day := range map[string]float64{"d": 1, "w": 7} {
		if number, ok := strings.CutSuffix(text, unit); ok {
			hours, err := time.ParseDuration(number + "h")
			if err != nil || hours <= 0 || hours.Hours()*24*day > maxTTL.Hours() {
				return 0, false, bad
			}
			return time.Duration(float64(hours) * 24 * day), false, nil
		}
	}
	if ttl, err = time.ParseDuration(text); err != nil || ttl <= 0 || ttl > maxTTL {
		return 0, false, bad
	}
	return ttl, false, nil
}

const maxTTL = 100 * 366 * 24 * time.Hour

// about says where a value is.
func about(r *store.Result) event.StoredResult {
	n := r.Normal()
	out := event.StoredResult{Ref: n.Ref, Store: n.Tier, Scope: n.Scope, Bytes: n.Bytes, SHA256: n.SHA256}
	if n.MediaType != store.MediaJSON {
		out.MediaType = n.MediaType
	}
	if !n.ExpiresAt.IsZero() {
		out.ExpiresAt = &n.ExpiresAt
	}
	return out
}

// About says where a value is.
func About(r *store.Result) event.StoredResult { return about(r) }

// isJSON tells whether values of a media type must be JSON.
func isJSON(media string) bool {
	kind, _, _ := strings.Cut(media, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "" || kind == store.MediaJSON
}
