// Package doctor finds out what keeps a server from working, or soon will, and
// says what to do about it. Every check looks and changes nothing. It must not
// know how settings are given, nor how a database or a broker is reached:
// whoever puts the checks together hands that in.
package doctor

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Level says how bad a finding is.
type Level string

// From good to bad.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it works, and may not tomorrow
	Fail Level = "fail" // it does not work
)

// Finding is one thing that was looked at.
type Finding struct {
	Check  string `json:"check"`
	Level  Level  `json:"level"`
	What   string `json:"what"`
	Where  string `json:"where,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// Check looks at one part.
type Check interface {
	// Name is one word for the part.
	Name() string
	// Look returns what it finds, at least one finding.
	Look(ctx context.Context) []Finding
}

// Report is what all checks found.
type Report struct {
	Healthy  bool      `json:"healthy"` // nothing fails
	Warnings int       `json:"warnings"`
	Failures int       `json:"failures"`
	Findings []Finding `json:"findings"`
}

// patience bounds one check.
const patience = 15 * time.Second

// Run makes all checks side by side and keeps their order.
func Run(ctx context.Context, checks ...Check) Report {
	found := make([][]Finding, len(checks))
	var all sync.WaitGroup
	for i, c := range checks {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			found[i] = look(ctx, c)
		})
	}
	all.Wait()
	r := Report{Findings: []Finding{}}
	for _, list := range found {
		for _, f := range list {
			switch f.Level {
			case Fail:
				r.Failures++
			case Warn:
				r.Warnings++
			}
			r.Findings = append(r.Findings, f)
		}
	}
	r.Healthy = r.Failures == 0
	return r
}

// look makes one check. One that breaks is a finding too.
func look(ctx context.Context, c Check) (found []Finding) {
	defer func() {
		if v := recover(); v != nil {
			found = []Finding{{Check: c.Name(), Level: Fail, What: fmt.Sprintf("the check itself broke: %v", v), Remedy: "report this as a bug"}}
		}
	}()
	found = c.Look(ctx)
	for i := range found {
		found[i].Check = c.Name()
	}
	return found
}

func ok(where, format string, args ...any) Finding {
	return Finding{Level: OK, What: fmt.Sprintf(format, args...), Where: where}
}

func warn(where, remedy, format string, args ...any) Finding {
	return Finding{Level: Warn, What: fmt.Sprintf(format, args...), Where: where, Remedy: remedy}
}

func fail(where, remedy, format string, args ...any) Finding {
	return Finding{Level: Fail, What: fmt.Sprintf(format, args...), Where: where, Remedy: remedy}
}

// failed is an error as a finding, with the remedy it brings along.
func failed(where, remedy string, err error) Finding {
	if e, coded := asCoded(err); coded {
		if e.Remedy != "" {
			remedy = e.Remedy
		}
		return fail(where, remedy, "%s", e.Message)
	}
	return fail(where, remedy, "%v", err)
}

func asCoded(err error) (*event.Error, bool) {
	for err != nil {
		if e, is := err.(*event.Error); is {
			return e, true
		}
		u, is := err.(interface{ Unwrap() error })
		if !is {
			return nil, false
		}
		err = u.Unwrap()
	}
	return nil, false
}
