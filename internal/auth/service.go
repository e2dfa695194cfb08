package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/lru"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// Mode says what callers have to show.
type Mode string

// The modes. Client certificates count in both that ask for anything.
const (
	ModeOff   Mode = "off"
	ModeToken Mode = "token" // API tokens and sessions opened with them
	ModeOIDC  Mode = "oidc"  // bearer tokens of issuers and their login page too
)

// Options are the parts and settings of a Service.
type Options struct {
	Mode    Mode
	Store   store.Access
	IDs     func() event.ID
	Clock   func() time.Time
	Logger  *slog.Logger
	Metrics *obs.Registry

	Issuers      []Issuer // whose bearer tokens count; the first is where browsers sign in
	Certificates []Rule   // what client certificates may do
	Leeway       time.Duration
	KeysTTL      time.Duration // how long the keys of an issuer are taken as they are
	SessionIdle  time.Duration // ends a session that is not used
	SessionMax   time.Duration // ends a session however much it is used
	KeepActions  time.Duration // how long actions are kept; 0 = for ever
	RedirectURL  string        // where issuers send browsers back to: CallbackPath of this server
	Transport    http.RoundTripper
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = &obs.Registry{}
	}
	if o.SessionMax == 0 {
		o.SessionMax = 24 * time.Hour
	}
	if o.SessionIdle == 0 {
		o.SessionIdle = 8 * time.Hour
	}
	if o.KeysTTL == 0 {
		o.KeysTTL = 10 * time.Minute
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	return o
}

const (
	// verifiedFor is how long a token or session is taken as checked: the time a
	// revocation needs to reach every server.
	verifiedFor = 5 * time.Second
	maxVerified = 4096
	// failuresAtOnce and failureEvery bound how often an address may fail.
	failuresAtOnce = 20
	failureEvery   = 3 * time.Second
)

// Service tells who calls. It is safe for concurrent use; Run must run beside.
type Service struct {
	o        Options
	meters   meters
	issuers  []*issuer
	verified *lru.Cache[string, verified]
	uses     *lastUses
	failures *limiter
	logins   *rate.Limiter
	record   *recorder
}

// verified is evidence that was found good.
type verified struct {
	principal Principal
	token     event.ID // that it is or depends on
	session   *Session
	at        time.Time
	ends      time.Time
}

// New makes a service. The error says which setting is wrong.
func New(o Options) (*Service, error) {
	o = o.withDefaults()
	s := &Service{
		o: o, meters: newMeters(o.Metrics), verified: lru.New[string, verified](maxVerified), uses: newLastUses(),
		failures: newLimiter(failuresAtOnce, failureEvery), logins: rate.NewLimiter(loginsPerSecond, loginsAtOnce),
	}
	s.record = newRecorder(s)
	switch o.Mode {
	case ModeOff:
		s.meters.disabled.Set(1)
	case ModeToken, ModeOIDC:
		s.meters.disabled.Set(0)
	default:
		return nil, event.Errorf(event.Invalid, "there is no way of authentication %q: choose off, token or oidc", o.Mode)
	}
	if err := CheckCertificateRules(o.Certificates); err != nil {
		return nil, err
	}
	if o.Mode != ModeOIDC {
		return s, nil
	}
	if len(o.Issuers) == 0 {
		return nil, event.Errorf(event.Invalid, "authentication by oidc needs an issuer")
	}
	for _, i := range o.Issuers {
		made, err := newIssuer(i, &s.o, s.meters)
		if err != nil {
			return nil, err
		}
		s.issuers = append(s.issuers, made)
	}
	return s, nil
}

// Required is false where authentication is off and everybody is Local.
func (s *Service) Required() bool { return s.o.Mode != ModeOff }

// refused is what every wrong evidence is answered with; the cause is for logs
// and counters only.
func refused(reason string) error {
	return &event.Error{
		Code: event.Unauthorized, Message: "this needs a valid token or session", Reason: "unauthorized", Err: &failure{reason},
		Remedy: "send the header Authorization: Bearer <token>, or sign in",
	}
}

// failure is why evidence was refused.
type failure struct{ reason string }

func (f *failure) Error() string { return "refused: " + f.reason }

// Identify checks what a request brings. A header of the caller counts before a
// session, and that before the certificate of the connection. The error is
// Unauthorized, ErrNoEvidence, Limit after too many failures of one address,
// or Unavailable when nobody can tell.
func (s *Service) Identify(ctx context.Context, e Evidence) (*Principal, error) {
	if !s.Required() {
		return &Local, nil
	}
	switch {
	case e.Bearer != "":
		v, err := s.limited(e.Remote, func(known func(string) bool) (verified, error) { return s.bearer(ctx, e.Bearer, forUs, known) })
		return principalOf(v, err)
	case e.Session != "":
		v, err := s.limited(e.Remote, func(known func(string) bool) (verified, error) { return s.session(ctx, e.Session, known) })
		return principalOf(v, err)
	case e.Certificate != nil:
		v, err := s.limited(e.Remote, func(func(string) bool) (verified, error) { return s.certificate(e) })
		return principalOf(v, err)
	}
	return nil, ErrNoEvidence
}

func principalOf(v verified, err error) (*Principal, error) {
	if err != nil {
		return nil, err
	}
	return &v.principal, nil
}

// limited runs a check for an address. One that failed too often may still show
// what was found good here before, and what can be checked without the
// database; the rest is refused unseen.
func (s *Service) limited(remote string, check func(known func(key string) bool) (verified, error)) (verified, error) {
	wait := s.failures.wait(remote, s.o.Clock())
	v, err := check(func(key string) bool {
		if wait == 0 {
			return true
		}
		_, ok := s.verified.Get(key)
		return ok
	})
	f, ok := errors.AsType[*failure](err)
	switch {
	case !ok:
		return v, err
	case wait > 0:
		s.meters.failures.Inc(failLimited)
		return verified{}, tooMany(wait)
	}
	s.meters.failures.Inc(f.reason)
	s.failures.use(remote, s.o.Clock())
	return verified{}, err
}

// bearer checks a bearer token of either kind.
func (s *Service) bearer(ctx context.Context, text string, audience func(*issuer) []string, known func(string) bool) (verified, error) {
	if id, secret, ok := splitToken(text); ok {
		return s.token(ctx, text, id, secret, known)
	}
	if s.o.Mode != ModeOIDC {
		return verified{}, refused(failJWT)
	}
	p, err := s.verifyBearer(ctx, text, audience)
	if err != nil {
		return verified{}, err
	}
	return verified{principal: p, at: s.o.Clock(), ends: p.Expires}, nil
}

// certificate maps a client certificate that the handshake has verified. A
// connection may outlive it.
func (s *Service) certificate(e Evidence) (verified, error) {
	c, now := e.Certificate, s.o.Clock()
	if now.Before(c.NotBefore) || now.After(c.NotAfter) {
		return verified{}, refused(failCertificate)
	}
	name := c.Subject.CommonName
	switch {
	case name != "":
	case len(c.URIs) > 0:
		name = c.URIs[0].String()
	case len(c.DNSNames) > 0:
		name = c.DNSNames[0]
	default:
		return verified{}, refused(failCertificate)
	}
	id := c.Subject.String()
	if id == "" {
		id = name
	}
	return verified{principal: Principal{
		ID: "cert:" + short(id), Name: short(name), By: ByCertificate, Grants: certificateGrants(c, s.o.Certificates), Expires: c.NotAfter,
	}}, nil
}

// hash is how secrets are stored and remembered.
func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newSecret is 256 random bits.
func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
