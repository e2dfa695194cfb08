package tool

import "time"

// Error kinds: the vocabulary policy rules see as output.error.kind.
const (
	KindConnection    = "connection"
	KindTimeout       = "timeout"
	KindRateLimit     = "rate_limit"
	KindAuth          = "auth"
	KindNotFound      = "not_found"
	KindClientError   = "client_error"
	KindServerError   = "server_error"
	KindSchema        = "schema"
	KindParse         = "parse"
	KindTransform     = "transform"
	KindDBConnection  = "db_connection"
	KindDBConstraint  = "db_constraint"
	KindDBDeadlock    = "db_deadlock"
	KindDBTimeout     = "db_timeout"
	KindStorageQuota  = "storage_quota"
	KindStorageAccess = "storage_access"
	KindMissingRef    = "missing_reference"
	KindSandbox       = "sandbox"
	KindConfig        = "config"
	KindTemplate      = "template"
	KindCancelled     = "cancelled"
	KindResourceLimit = "resource_limit"
	KindLogic         = "logic" // the action ran and reported failure: exit code, raised exception
	KindInternal      = "internal"
	KindUnknown       = "unknown"
)

// Error is a failed action. Message is for people; Kind, Code and Retryable
// are for policy rules.
type Error struct {
	Kind       string         `json:"kind"`
	Code       string         `json:"code,omitempty"`
	Message    string         `json:"message"`
	Retryable  bool           `json:"retryable"`
	HTTPStatus int            `json:"http_status,omitempty"`
	PGCode     string         `json:"pg_code,omitempty"`
	RetryAfter time.Duration  `json:"-"`
	Details    map[string]any `json:"details,omitempty"` // python: exception_type, traceback
}

func (e *Error) Error() string { return e.Message }
