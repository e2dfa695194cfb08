package event

import (
	"net/url"
	"strings"
	"time"
)

// ResultRef names a value that was put aside because it is too large for the
// log. In text it reads noetl://execution/<execution>/result/<name>/<id>, with
// the name percent-encoded.
type ResultRef struct {
	Execution ID
	Name      string // usually a step
	ID        ID
}

const resultScheme = "noetl://execution/"

func (r ResultRef) String() string {
	return resultScheme + r.Execution.String() + "/result/" + url.PathEscape(r.Name) + "/" + r.ID.String()
}

// ParseResultRef reads a reference. A name with a slash that arrives already
// decoded, as happens to references pasted into a query, is still understood.
func ParseResultRef(s string) (ResultRef, error) {
	bad := &Error{
		Code: Invalid, Message: "\"" + s + "\" is no reference to a result",
		Remedy: "references read noetl://execution/<execution>/result/<name>/<id>",
	}
	rest, ok := strings.CutPrefix(s, resultScheme)
	if !ok {
		return ResultRef{}, bad
	}
	execution, rest, ok := strings.Cut(rest, "/result/")
	if !ok {
		return ResultRef{}, bad
	}
	slash := strings.LastIndexByte(rest, '/')
	if slash < 1 {
		return ResultRef{}, bad
	}
	var r ResultRef
	var errs [3]error
	r.Execution, errs[0] = ParseID(execution)
	r.Name, errs[1] = url.PathUnescape(rest[:slash])
	r.ID, errs[2] = ParseID(rest[slash+1:])
	if errs != [3]error{} {
		return ResultRef{}, bad
	}
	return r, nil
}

// StoredResult tells where a value went that was put aside.
type StoredResult struct {
	Ref       string     `json:"ref"`
	Store     string     `json:"store"` // the tier: db, nats, file or s3
	Scope     string     `json:"scope"` // step, execution, workflow or permanent: how long it is kept
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256"` // in hex, of what was put
	MediaType string     `json:"media_type,omitempty"`
	ExpiresAt *time.Time `json:"expires_at"` // nil = with its execution, or never
}

// ResultOptions describe a value that is put aside. The zero value of each field
// but Name leaves the choice to the store.
type ResultOptions struct {
	Name       string `json:"name"` // usually the step
	SourceStep string `json:"source_step,omitempty"`
	Scope      string `json:"scope,omitempty"`      // step, execution, workflow, permanent
	TTL        string `json:"ttl,omitempty"`        // 30m, 1h, 1d, forever
	Store      string `json:"store,omitempty"`      // auto, db, nats, file, s3
	MediaType  string `json:"media_type,omitempty"` // application/json
}
