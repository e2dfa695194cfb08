package cli

import (
	"os"
	"time"

	"github.com/noetl/noetl-go/internal/node"
)

// authFlags say what callers of a server have to show. What is secret is no
// flag: others on the machine can read a command line.
type authFlags struct {
	Auth         string        `help:"What callers have to show: off, token (API tokens, sessions, client certificates) or oidc (bearer tokens of an issuer too)." default:"off" env:"NOETL_AUTH" placeholder:"MODE"`
	OIDCIssuer   string        `name:"oidc-issuer" help:"Issuer whose bearer tokens count, exactly as their iss says." env:"NOETL_OIDC_ISSUER" placeholder:"URL"`
	OIDCAudience string        `name:"oidc-audience" help:"Audience that those tokens must be for." env:"NOETL_OIDC_AUDIENCE" placeholder:"TEXT"`
	OIDCClientID string        `name:"oidc-client-id" help:"Client at the issuer with which browsers sign in; its secret is NOETL_OIDC_CLIENT_SECRET." env:"NOETL_OIDC_CLIENT_ID" placeholder:"ID"`
	OIDCGrants   string        `name:"oidc-grants" help:"What claims are worth: groups=admins->admin; sub=*->viewer." env:"NOETL_OIDC_GRANTS" placeholder:"RULES"`
	CertGrants   string        `name:"auth-cert-grants" help:"What client certificates are worth: CN=worker-1->worker; URI=spiffe://x/*->operator:team/a." env:"NOETL_AUTH_CERT_GRANTS" placeholder:"RULES"`
	JWTLeeway    int           `name:"auth-jwt-leeway-secs" help:"Seconds by which clocks may differ." default:"60" env:"NOETL_AUTH_JWT_LEEWAY_SECS" placeholder:"N"`
	JWKSTTL      int           `name:"auth-jwks-ttl-secs" help:"Seconds after which the keys of the issuer are read again." default:"600" env:"NOETL_AUTH_JWKS_TTL_SECS" placeholder:"N"`
	SessionIdle  time.Duration `help:"Ends a session that is not used for this long." default:"8h" env:"NOETL_SESSION_IDLE" placeholder:"DURATION"`
	SessionMax   time.Duration `help:"Ends a session after this time however much it is used." default:"24h" env:"NOETL_SESSION_MAX" placeholder:"DURATION"`
	AuditKeep    time.Duration `help:"How long the record of what operators did is kept; 0 for ever." default:"9600h" env:"NOETL_AUDIT_KEEP" placeholder:"DURATION"`
}

// authSettings must not be blank.
var authSettings = []string{
	"NOETL_AUTH", "NOETL_OIDC_ISSUER", "NOETL_OIDC_AUDIENCE", "NOETL_OIDC_CLIENT_ID", "NOETL_OIDC_CLIENT_SECRET", "NOETL_OIDC_GRANTS",
	"NOETL_AUTH_CERT_GRANTS", "NOETL_BOOTSTRAP_TOKEN", "NOETL_AUTH_JWT_LEEWAY_SECS", "NOETL_AUTH_JWKS_TTL_SECS", "NOETL_SESSION_IDLE",
	"NOETL_SESSION_MAX", "NOETL_AUDIT_KEEP", "NOETL_INSECURE", "NOETL_AUTH_INSECURE",
}

func (f *authFlags) options() (node.Authentication, error) {
	if err := refuseBlank(authSettings...); err != nil {
		return node.Authentication{}, err
	}
	if f.JWKSTTL == 0 || f.SessionIdle == 0 || f.SessionMax == 0 {
		return node.Authentication{}, invalidf("--auth-jwks-ttl-secs, --session-idle and --session-max must not be 0")
	}
	a := node.Authentication{
		Mode: f.Auth, Issuer: f.OIDCIssuer, Audience: f.OIDCAudience, ClientID: f.OIDCClientID, ClientSecret: os.Getenv("NOETL_OIDC_CLIENT_SECRET"),
		Grants: f.OIDCGrants, CertGrants: f.CertGrants, BootstrapToken: os.Getenv("NOETL_BOOTSTRAP_TOKEN"),
		Leeway: inSeconds(int64(f.JWTLeeway)), KeysTTL: inSeconds(int64(f.JWKSTTL)), SessionIdle: f.SessionIdle, SessionMax: f.SessionMax,
		KeepActions: f.AuditKeep,
	}
	return a, a.Check()
}

// protected tells whether callers have to show who they are.
func (f *authFlags) protected() bool { return f.Auth == "token" || f.Auth == "oidc" }
