package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	josejson "github.com/go-jose/go-jose/v4/json"

	"github.com/noetl/noetl-go/internal/event"
)

// algorithms are those a bearer token may be signed with. None of them can be
// checked with what is public about another.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.ES256}

const maxSubject = 255

// verifyBearer checks a bearer token of an issuer and says who it is of.
func (s *Service) verifyBearer(ctx context.Context, raw string, audience func(*issuer) []string) (Principal, error) {
	i, c, outcome, err := s.verifyJWT(ctx, raw, audience)
	s.meters.jwt.Inc(modeBearer, outcome)
	if err != nil {
		return Principal{}, err
	}
	return i.principal(c), nil
}

// forUs are the audiences of tokens that calls may bring; forLogin those of
// tokens that a session may be opened with: what the issuer tells our client
// about a person too.
func forUs(i *issuer) []string { return i.Audience }

func forLogin(i *issuer) []string {
	if i.ClientID == "" {
		return i.Audience
	}
	return append(slices.Clone(i.Audience), i.ClientID)
}

// principal is who claims speak of.
func (i *issuer) principal(c claims) Principal {
	end, _ := c.time("exp")
	return Principal{ID: i.principalID(c.text("sub")), Name: short(c.name()), By: ByOIDC, Grants: c.grants(i.Rules), Expires: end}
}

// verifyJWT checks a signed token: form, issuer, signature, and then what it
// says. audience are those one of which it must be for.
func (s *Service) verifyJWT(ctx context.Context, raw string, audience func(*issuer) []string) (*issuer, claims, string, error) {
	fail := func(outcome string) (*issuer, claims, string, error) { return nil, nil, outcome, refused(failJWT) }
	if len(raw) > maxBearer {
		return fail(jwtMalformed)
	}
	jws, err := jose.ParseSignedCompact(raw, algorithms)
	if _, wrong := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); wrong {
		return fail(jwtAlgorithm)
	}
	if err != nil || len(jws.Signatures) != 1 {
		return fail(jwtMalformed)
	}
	header := jws.Signatures[0].Protected
	alg := jose.SignatureAlgorithm(header.Algorithm)
	if !slices.Contains(algorithms, alg) {
		return fail(jwtAlgorithm)
	}
	if !plainHeader(header) {
		return fail(jwtMalformed)
	}
	said, ok := readClaims(jws.UnsafePayloadWithoutVerification())
	if !ok {
		return fail(jwtMalformed)
	}
	i := s.issuerOf(said.text("iss"))
	if i == nil {
		return fail(jwtIssuer)
	}
	key, err := i.key(ctx, header.KeyID, alg)
	switch {
	case errors.Is(err, errUnknownKey):
		return fail(jwtUnknownKey)
	case err != nil:
		return nil, nil, jwtUnavailable, unavailable(err)
	}
	payload, err := jws.Verify(key.Key)
	if err != nil {
		return fail(jwtSignature)
	}
	c, ok := readClaims(payload)
	if !ok {
		return fail(jwtMalformed)
	}
	if wrong := c.check(s.o.Clock(), s.o.Leeway, audience(i)); wrong != "" {
		return fail(wrong)
	}
	return i, c, jwtOK, nil
}

// plainHeader refuses headers that bring keys of their own or say that this is
// another kind of token.
func plainHeader(h jose.Header) bool {
	if h.JSONWebKey != nil {
		return false
	}
	for _, name := range []jose.HeaderKey{"jku", "x5u", "x5c", "crit", "b64"} {
		if _, ok := h.ExtraHeaders[name]; ok {
			return false
		}
	}
	typ, ok := h.ExtraHeaders[jose.HeaderType].(string)
	return !ok || slices.Contains([]string{"", "jwt", "at+jwt", "application/at+jwt"}, strings.ToLower(typ))
}

// readClaims reads an object in which no name stands twice: two readers could
// see two different tokens in it.
func readClaims(payload []byte) (claims, bool) {
	d := josejson.NewDecoder(strings.NewReader(string(payload)))
	d.SetNumberType(josejson.UnmarshalJSONNumber)
	var c claims
	if d.Decode(&c) != nil || c == nil || d.More() {
		return nil, false
	}
	return c, true
}

func (s *Service) issuerOf(url string) *issuer {
	for _, i := range s.issuers {
		if i.URL == url {
			return i
		}
	}
	return nil
}

// check tells what is wrong with verified claims; "" is nothing.
func (c claims) check(now time.Time, leeway time.Duration, audience []string) string {
	if !slices.ContainsFunc(c.audience(), func(a string) bool { return slices.Contains(audience, a) }) {
		return jwtAudience
	}
	if sub := c.text("sub"); sub == "" || len(sub) > maxSubject {
		return jwtClaims
	}
	end, ok := c.time("exp")
	if !ok || end.IsZero() {
		return jwtClaims
	}
	if !now.Before(end.Add(leeway)) {
		return jwtExpired
	}
	for _, name := range []string{"nbf", "iat"} {
		begin, ok := c.time(name)
		if !ok {
			return jwtClaims
		}
		if begin.After(now.Add(leeway)) {
			return jwtNotYet
		}
	}
	return ""
}

func (c claims) audience() []string {
	switch v := c["aud"].(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, a := range v {
			if text, ok := a.(string); ok {
				out = append(out, text)
			}
		}
		return out
	}
	return nil
}

// time reads a claim of seconds since 1970; zero when it is absent, not ok when
// it is something else.
func (c claims) time(name string) (time.Time, bool) {
	v, there := c[name]
	if !there {
		return time.Time{}, true
	}
	n, ok := v.(josejson.Number)
	if !ok {
		return time.Time{}, false
	}
	seconds, err := n.Float64()
	if err != nil || math.IsNaN(seconds) || seconds <= 0 || seconds > 253402300799 { // the year 9999
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0).UTC(), true
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// errIssuerGone is what a browser is told when the issuer cannot be asked.
func errIssuerGone(err error) error {
	return &event.Error{
		Code: event.Unavailable, Message: "the issuer that people sign in at does not answer", Reason: "issuer", Remedy: "try again in a moment", Err: err,
	}
}
