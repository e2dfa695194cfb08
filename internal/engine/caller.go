package engine

import (
	"encoding/json"
	"strings"
)

// caller is who calls back without knowing the command that waits: a job that
// has ended, and the iteration it ran for.
type caller struct {
	uid, name string
	index     *int
}

// jobPrefix begins what a command says it waits for when that is a job; the
// job's id or name follows.
const jobPrefix = "container:"

func callerOf(d *callDetail, m incomingMeta) caller {
	by := caller{index: m.Index}
	members(d.Data, func(key string, v json.RawMessage) {
		switch key {
		case "job_uid":
			by.uid = word(v)
		case "job_name":
			by.name = word(v)
		}
	})
	return by
}

// isNamed tells whether a command waits for this very job.
func (by caller) isNamed(callback string) bool {
	job, ok := strings.CutPrefix(callback, jobPrefix)
	job = job[strings.LastIndexByte(job, '/')+1:] // without its namespace
	return ok && job != "" && (job == by.uid || job == by.name)
}

// isAnother tells whether a command waits for a job, and for another one.
func (by caller) isAnother(callback string) bool {
	job, ok := strings.CutPrefix(callback, jobPrefix)
	return ok && job != "" && (by.uid != "" || by.name != "") && !by.isNamed(callback)
}
