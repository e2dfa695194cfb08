package provider

import (
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// Residency says in which regions a secret may be read.
type Residency struct {
	Mode    string   // none, advisory or strict; "" is none
	Region  string   // where the secret lives
	Allowed []string // further regions that may read it
}

// Check tells whether a server in a region may read the secret. A server that
// may not gets a Forbidden error under strict, and a remark under advisory.
func (r Residency) Check(server string) (remark string, err error) {
	var strict bool
	switch strings.ToLower(r.Mode) {
	case "", "none":
		return "", nil
	case "advisory":
	case "strict":
		strict = true
	default:
		return "", event.Errorf(event.Invalid, "residency: want none, advisory or strict, got %q", r.Mode)
	}
	here := func(region string) bool { return server != "" && strings.EqualFold(region, server) }
	if r.Region == "" && len(r.Allowed) == 0 || here(r.Region) || slices.ContainsFunc(r.Allowed, here) {
		return "", nil
	}
	remark = "the secret may not be read in region " + quote(server)
	if !strict {
		return remark, nil
	}
	return remark, &event.Error{
		Code: event.Forbidden, Message: remark, Reason: "residency_violation",
		Remedy: "resolve it on a server of an allowed region; NOETL_SERVER_REGION says where a server is",
	}
}
