package auth

import "github.com/noetl/noetl-go/internal/obs"

// Why evidence was refused, as counted. Callers are told none of it.
const (
	failUnknownToken   = "token_unknown"
	failSecret         = "token_secret"
	failRevoked        = "token_revoked"
	failExpired        = "token_expired"
	failUnknownSession = "session_unknown"
	failEndedSession   = "session_ended"
	failJWT            = "jwt"
	failCertificate    = "certificate"
	failLogin          = "login"
	failLimited        = "limited"
)

// What became of a bearer token of an issuer.
const (
	jwtOK          = "ok"
	jwtMalformed   = "malformed"
	jwtAlgorithm   = "algorithm"
	jwtIssuer      = "issuer"
	jwtUnknownKey  = "unknown_key"
	jwtSignature   = "signature"
	jwtAudience    = "audience"
	jwtExpired     = "expired"
	jwtNotYet      = "not_yet_valid"
	jwtClaims      = "claims"
	jwtUnavailable = "unavailable"
)

// Where such a token came from.
const (
	modeBearer = "bearer"
	modeLogin  = "login"
)

// What happened to the keys of an issuer.
const (
	keysHit     = "hit"
	keysMiss    = "miss"
	keysRefresh = "refresh"
	keysError   = "error"
	keysLimited = "limited" // not asked again so soon
)

type meters struct {
	jwt      obs.Counter // mode, outcome
	keys     obs.Counter // event
	failures obs.Counter // reason
	dropped  obs.Counter
	disabled obs.Gauge
}

func newMeters(r *obs.Registry) meters {
	return meters{
		jwt: r.Counter("noetl_auth_jwt_verify_total", "Bearer tokens of issuers that were checked.",
			obs.Label{Name: "mode", Values: []string{modeBearer, modeLogin}},
			obs.Label{Name: "outcome", Values: []string{
				jwtOK, jwtMalformed, jwtAlgorithm, jwtIssuer, jwtUnknownKey, jwtSignature, jwtAudience, jwtExpired, jwtNotYet, jwtClaims, jwtUnavailable,
			}}),
		keys: r.Counter("noetl_auth_jwks_total", "Look-ups of issuers' keys.",
			obs.Label{Name: "event", Values: []string{keysHit, keysMiss, keysRefresh, keysError, keysLimited}}),
		failures: r.Counter("noetl_auth_failures_total", "Callers who could not show who they are.",
			obs.Label{Name: "reason", Values: []string{
				failUnknownToken, failSecret, failRevoked, failExpired, failUnknownSession, failEndedSession, failJWT, failCertificate, failLogin, failLimited,
			}}),
		dropped:  r.Counter("noetl_auth_denials_dropped_total", "Denials that were not recorded because there were too many."),
		disabled: r.Gauge("noetl_auth_disabled", "1 while everybody who reaches the server may do everything."),
	}
}
