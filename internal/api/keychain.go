package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/keychain"
	"github.com/noetl/noetl-go/internal/store"
)

// Keychain gives secrets to the workers that need them and keeps what was
// resolved. *control.Plane does.
type Keychain interface {
	SealSecrets(ctx context.Context, r event.SecretRequest) (event.SecretAnswer, error)
	SealedCredential(ctx context.Context, alias, worker string, execution event.ID) (event.Sealed, error)
	KeptValue(ctx context.Context, k control.KeptSecret) (keychain.Held, error)
	KeepValue(ctx context.Context, k control.KeptSecret, d keychain.Deposit) (key string, until time.Time, err error)
	DropValue(ctx context.Context, k control.KeptSecret) (key string, known bool, err error)
	KeptValues(ctx context.Context, catalog event.ID) ([]store.KeychainEntry, error)
}

func (s *Server) keychainRoutes() []route {
	const scope = "?execution_id=&scope_type="
	return []route{
		entry(http.MethodPost, "/api/secrets/resolve", Worker, s.resolveSecrets, "gives the worker that holds a command the secrets it names, sealed for its registered key", `{execution_id, event_id, worker_id, attempt, aliases}`, `{sealed: {alg, v, eph_pub, ciphertext}}`).within(Permitted).noted(ofWorkers),
		entry(http.MethodGet, "/api/credentials/{identifier}/sealed", Worker, s.sealedCredential, "gives a worker of an execution one secret, sealed for its registered key", "?worker_id=&execution_id=", `{alg, v, eph_pub, ciphertext}`).within(Permitted),
		entry(http.MethodGet, "/api/keychain/catalog/{catalog_id}", Viewer, s.keptValues, "lists what is kept for a playbook, without values", "", `{catalog_id, entries: [{cache_key, keychain_name, scope_type, expires_at, expired, …}], count}`).within(Permitted),
		entry(http.MethodGet, "/api/keychain/{catalog_id}/{name}", Worker, s.keptValue, "returns a kept value, only to the internal token", scope, `{status: found|expired|not_found, data?, token_data?, credential_type?, expires_at?, ttl_seconds?, auto_renew?, access_count?}`).within(Permitted),
		entry(http.MethodPost, "/api/keychain/{catalog_id}/{name}", Internal, s.keepValue, "keeps a value for a playbook", `{data | token_data, scope_type?, execution_id?, expires_at?, expires_in? | ttl_seconds?, credential_type?, auto_renew?, renew_config?}`, `{status, cache_key, expires_at}`).within(Everywhere).noted("keychain.stored"),
		entry(http.MethodDelete, "/api/keychain/{catalog_id}/{name}", Internal, s.dropValue, "forgets a kept value", scope, `{status: deleted|not_found, cache_key}`).within(Everywhere).noted("keychain.deleted"),
	}
}

func (s *Server) keychain() (Keychain, error) {
	if s.opt.Keychain == nil {
		return nil, &event.Error{Code: event.Unavailable, Message: "this server keeps no credentials", Reason: "no_secrets"}
	}
	return s.opt.Keychain, nil
}

// private sends an answer that nobody between may keep.
func private(w http.ResponseWriter, v any) error {
	w.Header().Set("Cache-Control", "no-store")
	return respond(w, v)
}

func (s *Server) resolveSecrets(w http.ResponseWriter, r *http.Request) error {
	k, err := s.keychain()
	if err != nil {
		return err
	}
	var body event.SecretRequest
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if err := s.permitExecution(r.Context(), body.ExecutionID); err != nil {
		return err
	}
	a, err := k.SealSecrets(r.Context(), body)
	if err != nil {
		return err
	}
	return private(w, a)
}

func (s *Server) sealedCredential(w http.ResponseWriter, r *http.Request) error {
	k, err := s.keychain()
	if err != nil {
		return err
	}
	q := queryOf(r)
	worker, execution := q.Get("worker_id"), q.id("execution_id")
	switch {
	case q.err != nil:
		return q.err
	case worker == "" || execution == 0:
		return event.Errorf(event.BadRequest, "worker_id and execution_id are required: a secret is given to a worker of an execution")
	}
	if err := s.permitExecution(r.Context(), execution); err != nil {
		return err
	}
	a, err := k.SealedCredential(r.Context(), r.PathValue("identifier"), worker, execution)
	if err != nil {
		return err
	}
	return private(w, a)
}

// kept names the value that a request is about.
func (s *Server) kept(r *http.Request) (control.KeptSecret, error) {
	q := queryOf(r)
	k := control.KeptSecret{Name: r.PathValue("name"), Scope: q.Get("scope_type"), ExecutionID: q.id("execution_id"), Use: s.use(r)}
	var err error
	if k.CatalogID, err = pathID(r, "catalog_id"); err == nil {
		err = q.err
	}
	if err == nil && (!utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, unicode.IsControl)) {
		err = event.Errorf(event.Invalid, "name: want text without control characters") // databases would change it, and then it is another row's
	}
	return k, err
}

func (s *Server) keptValue(w http.ResponseWriter, r *http.Request) error {
	desk, err := s.keychain()
	if err != nil {
		return err
	}
	k, err := s.kept(r)
	if err != nil {
		return err
	}
	if err := s.permitEntry(r.Context(), control.EntryRef{CatalogID: k.CatalogID}, false); err != nil {
		return err
	}
	if s.authorizeInternal(r) != nil {
		use := k.Use
		use.Operation, use.ExecutionID = secret.OpResolve, k.ExecutionID
		if s.opt.Secrets != nil {
			if err := s.opt.Secrets.Record(r.Context(), use, "keychain:"+k.Name, secret.OutcomeDenied, ""); err != nil {
				return err
			}
		}
		return &event.Error{
			Code: event.Forbidden, Message: "kept values are not shown", Reason: "include_data",
			Remedy: "workers get them for the command they hold; in an emergency send the internal token as a bearer token",
		}
	}
	h, err := desk.KeptValue(r.Context(), k)
	if err != nil {
		return err
	}
	a := struct {
		Status      string          `json:"status"`
		Data        json.RawMessage `json:"data,omitempty"`
		TokenData   json.RawMessage `json:"token_data,omitempty"` // the older word
		Type        string          `json:"credential_type,omitempty"`
		ExpiresAt   *time.Time      `json:"expires_at,omitempty"`
		TTL         *int64          `json:"ttl_seconds,omitempty"`
		AutoRenew   *bool           `json:"auto_renew,omitempty"`
		AccessCount *int64          `json:"access_count,omitempty"`
	}{Status: h.Status, Data: h.Data, TokenData: h.Data, Type: h.Type, ExpiresAt: timeOrNull(h.ExpiresAt)}
	if h.Status != "not_found" {
		left := max(0, int64(h.ExpiresAt.Sub(s.opt.Clock()).Seconds()))
		a.TTL, a.AutoRenew, a.AccessCount = &left, &h.AutoRenew, &h.AccessCount
	}
	return private(w, a)
}

type keepBody struct {
	Data      json.RawMessage `json:"data"`
	TokenData json.RawMessage `json:"token_data"` // the older word
	Type      string          `json:"credential_type"`
	Scope     string          `json:"scope_type"`
	Execution event.StringID  `json:"execution_id"`
	Parent    event.StringID  `json:"parent_execution_id"`
	ExpiresAt instant         `json:"expires_at"`
	ExpiresIn float64         `json:"expires_in"`
	TTL       float64         `json:"ttl_seconds"`
	AutoRenew bool            `json:"auto_renew"`
	Renewal   map[string]any  `json:"renew_config"`
}

func (s *Server) keepValue(w http.ResponseWriter, r *http.Request) error {
	desk, err := s.keychain()
	if err != nil {
		return err
	}
	k, err := s.kept(r)
	if err != nil {
		return err
	}
	var body keepBody
	if err := decode(r, &body, false); err != nil {
		code := event.CodeOf(err)
		if code != event.Limit && code != event.Unavailable { // the text may hold the secret
			err = &event.Error{Code: code, Message: "the request body is not JSON as expected", Remedy: "send {data, scope_type?, execution_id?, expires_at?, …} as a JSON object"}
		}
		return err
	}
	if body.ExpiresIn < 0 || body.TTL < 0 {
		return event.Errorf(event.Invalid, "expires_in and ttl_seconds: want seconds from now, not before")
	}
	k.Scope = first(body.Scope, k.Scope)
	if body.Execution != 0 {
		k.ExecutionID = event.ID(body.Execution)
	}
	d := keychain.Deposit{
		Parent: event.ID(body.Parent), Type: body.Type, Data: body.Data, ExpiresAt: time.Time(body.ExpiresAt),
		ExpiresIn: lasting(max(body.ExpiresIn, body.TTL)), AutoRenew: body.AutoRenew, Renewal: body.Renewal,
	}
	if len(d.Data) == 0 {
		d.Data = body.TokenData
	}
	key, until, err := desk.KeepValue(r.Context(), k, d)
	if err != nil {
		return err
	}
	return respond(w, struct {
		Status    string    `json:"status"`
		CacheKey  string    `json:"cache_key"`
		ExpiresAt time.Time `json:"expires_at"`
	}{"success", key, until.UTC()})
}

// lasting is a time that no number of seconds can overflow.
func lasting(n float64) time.Duration { return time.Duration(min(n, 1e9) * float64(time.Second)) }

func (s *Server) dropValue(w http.ResponseWriter, r *http.Request) error {
	desk, err := s.keychain()
	if err != nil {
		return err
	}
	k, err := s.kept(r)
	if err != nil {
		return err
	}
	key, known, err := desk.DropValue(r.Context(), k)
	if err != nil {
		return err
	}
	status := "not_found"
	if known {
		status = "deleted"
	}
	return respond(w, struct {
		Status   string `json:"status"`
		CacheKey string `json:"cache_key"`
	}{status, key})
}

type keptView struct {
	CacheKey    string     `json:"cache_key"`
	Name        string     `json:"keychain_name"`
	CatalogID   string     `json:"catalog_id"`
	Type        string     `json:"credential_type"`
	CacheType   string     `json:"cache_type"`
	Scope       string     `json:"scope_type"`
	ExecutionID *string    `json:"execution_id"`
	ExpiresAt   time.Time  `json:"expires_at"`
	Expired     bool       `json:"expired"`
	CreatedAt   time.Time  `json:"created_at"`
	AccessedAt  *time.Time `json:"accessed_at"`
	AccessCount int64      `json:"access_count"`
	AutoRenew   bool       `json:"auto_renew"`
}

func (s *Server) keptValues(w http.ResponseWriter, r *http.Request) error {
	desk, err := s.keychain()
	if err != nil {
		return err
	}
	catalog, err := pathID(r, "catalog_id")
	if err != nil {
		return err
	}
	if err := s.permitEntry(r.Context(), control.EntryRef{CatalogID: catalog}, false); err != nil {
		return err
	}
	rows, err := desk.KeptValues(r.Context(), catalog)
	if err != nil {
		return err
	}
	items, now := make([]keptView, len(rows)), s.opt.Clock()
	for i, e := range rows {
		items[i] = keptView{
			CacheKey: e.CacheKey, Name: e.Name, CatalogID: e.CatalogID.String(), Type: e.CredentialType, CacheType: e.CacheType, Scope: e.Scope,
			ExpiresAt: e.ExpiresAt.UTC(), Expired: !e.ExpiresAt.After(now), CreatedAt: e.CreatedAt.UTC(), AccessedAt: timeOrNull(e.AccessedAt), AccessCount: e.AccessCount, AutoRenew: e.AutoRenew,
		}
		if e.ExecutionID != 0 {
			items[i].ExecutionID = textOrNull(e.ExecutionID.String())
		}
	}
	return respond(w, struct {
		CatalogID string     `json:"catalog_id"`
		Entries   []keptView `json:"entries"`
		Count     int        `json:"count"`
	}{catalog.String(), items, len(items)})
}
