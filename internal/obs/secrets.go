package obs

import (
	"cmp"
	"time"
)

// Outcomes of fetching a secret ahead of need and of renewing one.
const (
	RefreshTriggered = "triggered"
	RefreshCollapsed = "stampede_collapsed" // it was under way
	RefreshSucceeded = "succeeded"
	RefreshFailed    = "failed"
	RefreshUndecided = "decision_failed" // what is kept could not be read
	RenewAbandoned   = "abandoned"       // its execution has ended
)

// Why a secret is not kept.
const (
	KeepTooShort = "expires_soon"
	KeepFailed   = "not_stored"
)

// Secrets are the metrics of credentials and keychains.
type Secrets struct {
	SecretsReleased    Counter // operation
	SecretsDenied      Counter // operation
	SecretAuditDropped Counter
	AuditWrites        Counter   // operation, outcome, status
	SecretsResolved    Counter   // provider, region, status
	SecretResolveTime  Histogram // provider, region
	SecretTTL          Histogram
	SecretsNotKept     Counter // reason
	SecretRefreshes    Counter // outcome
	SecretRefreshTime  Histogram
	KeychainRenewals   Counter // outcome
	Residency          Counter // policy, decision
	CredentialsSealed  Counter // status
	WalletRotations    Counter // table, status
}

// SecretWords are what the labels of secrets range over.
var SecretWords = struct{ Operations, Outcomes, Providers, Sealed []string }{
	Operations: []string{"get_credential", "get_sealed", "resolve_keychain", "check", "create", "update", "delete", "rotate"},
	Outcomes:   []string{"ok", "denied", "credential_not_found", "decrypt_error", "failed"},
	Providers: []string{
		"credential", "static", "token_endpoint", "google_id_token",
		"env", "file", "vault", "k8s", "aws", "aws_sts", "gcp", "gcp_iam", "azure", "azure_oauth",
	},
	Sealed: []string{"ok", "no_pubkey", "residency_violation", "credential_error", "seal_error", "denied"},
}

// noRegion is the region of a server that was not told of any.
const noRegion = "none"

func newSecrets(r *Registry, region string) Secrets {
	ttls := []float64{5, 30, 60, 300, 900, 3600, 14400, 43200, 86400}
	operations := Label{Name: "operation", Values: SecretWords.Operations, Open: true}
	providers := Label{Name: "provider", Values: SecretWords.Providers, Open: true}
	regions := Label{Name: "region", Values: []string{region}}
	return Secrets{
		SecretsReleased:    r.Counter("noetl_secret_released_total", "Secrets that were handed out.", operations),
		SecretsDenied:      r.Counter("noetl_secret_denied_total", "Secrets that were asked for and not handed out.", operations),
		SecretAuditDropped: r.Counter("noetl_secret_audit_dropped_total", "Lines of the secret audit that could not be written."),
		AuditWrites: r.Counter("noetl_secret_audit_writes_total", "Lines of the secret audit, and whether they were written.",
			operations, Label{Name: "outcome", Values: SecretWords.Outcomes, Open: true}, Label{Name: "status", Values: []string{OK, Error}}),
		SecretsResolved: r.Counter("noetl_secret_resolve_total", "Secrets that were got where they come from.",
			providers, regions, Label{Name: "status", Values: []string{OK, Refused, Error}}),
		SecretResolveTime: r.Histogram("noetl_secret_resolve_duration_seconds", "Time that took.", coarse, providers, regions),
		SecretTTL:         r.Histogram("noetl_secret_dynamic_ttl_seconds", "How long secrets are good that their issuer takes back.", ttls),
		SecretsNotKept: r.Counter("noetl_secret_cache_skip_total", "Secrets that were used and not kept.",
			Label{Name: "reason", Values: []string{KeepTooShort, KeepFailed}}),
		SecretRefreshes: r.Counter("noetl_secret_refresh_total", "Kept secrets that were fetched again ahead of need.",
			Label{Name: "outcome", Values: []string{RefreshTriggered, RefreshCollapsed, RefreshSucceeded, RefreshFailed, RefreshUndecided}}),
		SecretRefreshTime: r.Histogram("noetl_secret_refresh_duration_seconds", "Time that took.", quick),
		KeychainRenewals: r.Counter("noetl_keychain_renew_total", "Kept secrets that were renewed because their playbook says so.",
			Label{Name: "outcome", Values: []string{RefreshSucceeded, RefreshFailed, RenewAbandoned}}),
		Residency: r.Counter("noetl_secret_residency_check_total", "Checks whether a secret may be read here.",
			Label{Name: "policy", Values: []string{"none", "advisory", "strict"}}, Label{Name: "decision", Values: []string{"allowed", "remarked", "denied"}}),
		CredentialsSealed: r.Counter("noetl_credentials_sealed_total", "Secrets sealed for a worker, and why not.",
			Label{Name: "status", Values: SecretWords.Sealed}),
		WalletRotations: r.Counter("noetl_wallet_rotate_total", "Rows wrapped with the current key.",
			Label{Name: "table", Values: []string{"credential", "keychain"}}, Label{Name: "status", Values: []string{"rewrapped", "skipped", "failed"}}),
	}
}

// SecretMeter counts the use of secrets.
type SecretMeter struct {
	Metrics *Metrics
	Region  string // of this server
}

// Released counts a secret that was handed out.
func (s SecretMeter) Released(operation string) { s.Metrics.SecretsReleased.Inc(operation) }

// Denied counts one that was asked for and not handed out.
func (s SecretMeter) Denied(operation string) { s.Metrics.SecretsDenied.Inc(operation) }

// AuditDropped counts audit lines that were lost.
func (s SecretMeter) AuditDropped(lines int) { s.Metrics.SecretAuditDropped.Add(float64(lines)) }

// AuditWritten counts an audit line that was written, or was not.
func (s SecretMeter) AuditWritten(operation, outcome string, ok bool) {
	status := OK
	if !ok {
		status = Error
	}
	s.Metrics.AuditWrites.Inc(operation, outcome, status)
}

// Rotated counts rows of a table that a rotation looked at.
func (s SecretMeter) Rotated(table string, rewrapped, skipped, failed int) {
	s.Metrics.WalletRotations.Add(float64(rewrapped), table, "rewrapped")
	s.Metrics.WalletRotations.Add(float64(skipped), table, "skipped")
	s.Metrics.WalletRotations.Add(float64(failed), table, "failed")
}

// Resolved counts a secret that was got, or not, from where it comes from;
// status is ok, refused or error.
func (s SecretMeter) Resolved(provider, status string, took time.Duration) {
	region := cmp.Or(s.Region, noRegion)
	s.Metrics.SecretsResolved.Inc(provider, region, status)
	s.Metrics.SecretResolveTime.Observe(took.Seconds(), provider, region)
}

// Lifetime counts how long a secret is good that its issuer takes back.
func (s SecretMeter) Lifetime(d time.Duration) { s.Metrics.SecretTTL.Observe(d.Seconds()) }

// NotKept counts a secret that was used and not kept.
func (s SecretMeter) NotKept(reason string) { s.Metrics.SecretsNotKept.Inc(reason) }

// Refresh counts a step of fetching a secret ahead of need.
func (s SecretMeter) Refresh(outcome string) { s.Metrics.SecretRefreshes.Inc(outcome) }

// Refreshed counts the end of it.
func (s SecretMeter) Refreshed(ok bool, took time.Duration) {
	s.Metrics.SecretRefreshTime.Observe(took.Seconds())
	s.Refresh(ended(ok))
}

// Renewed counts the end of a renewal.
func (s SecretMeter) Renewed(outcome string) { s.Metrics.KeychainRenewals.Inc(outcome) }

// Resides counts a check whether a secret may be read here.
func (s SecretMeter) Resides(policy, decision string) { s.Metrics.Residency.Inc(policy, decision) }

func ended(ok bool) string {
	if ok {
		return RefreshSucceeded
	}
	return RefreshFailed
}
