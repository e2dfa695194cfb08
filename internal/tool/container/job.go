package container

import (
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// job is what an engine is asked to run.
type job struct {
	*Spec
	name   string
	labels map[string]string
	limit  time.Duration
	fresh  bool // one that has ended is not taken for this one
}

// Names of labels. They tell a job's owner to people and to watchers.
const (
	labelExecution = "noetl.execution-id"
	labelStep      = "noetl.step-name"
	labelKind      = "noetl.tool-kind"
	labelCommand   = "noetl.command-id"
	labelRun       = "noetl.run"
	labelAttempt   = "noetl.attempt"
	labelTTL       = "noetl.ttl-seconds"
	labelLimit     = "noetl.limit-seconds"
)

// longestName is what Kubernetes allows: the name of a job is a label of its
// pods.
const longestName = 63

// newJob names a job after the command and the run within it, so that whoever
// runs the same again after a crash finds it under that name. The attempt of
// the command differs then, and is no part of the name.
func newJob(call *tool.Call, kind string, s *Spec, limit time.Duration) *job {
	sum := sha256.Sum256([]byte(call.ExecutionID + "\x00" + call.CommandID + "\x00" + strconv.Itoa(call.Run)))
	id := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:10])
	head, tail := "noetl-"+kind+"-", "-"+id
	if call.ExecutionID != "" {
		tail = "-" + plain(call.ExecutionID, 20) + tail
	}
	step := plain(call.Step, min(20, longestName-len(head)-len(tail)))
	if step == "" {
		step = "step"
	}
	return &job{
		Spec: s, name: head + step + tail, limit: limit, fresh: call.Run == 0,
		labels: map[string]string{
			labelExecution: label(call.ExecutionID), labelStep: label(call.Step), labelKind: kind, labelCommand: label(call.CommandID),
			labelRun: strconv.Itoa(call.Run), labelAttempt: strconv.Itoa(call.Attempt), labelTTL: strconv.Itoa(int(s.TTL.Seconds())),
			labelLimit: strconv.Itoa(int(limit.Seconds())),
		},
	}
}

// plain is text as part of a name: lower case letters, digits and dashes.
func plain(text string, most int) string {
	out := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	if most = max(most, 0); len(out) > most {
		out = out[:most]
	}
	return strings.Trim(out, "-")
}

// label is text as the value of a label. What does not fit in is told apart by
// a sum at its end.
func label(text string) string {
	const longest = 63
	out := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}, text)
	trimmed := strings.Trim(out, "-_.")
	if trimmed == text && len(text) <= longest {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	id := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:8])
	if len(trimmed) > longest-9 {
		trimmed = strings.TrimRight(trimmed[:longest-9], "-_.")
	}
	return strings.TrimLeft(trimmed+"-"+id, "-")
}

// isOf tells whether a job that was found under the name is this one, from its
// labels.
func (j *job) isOf(labels map[string]string) bool {
	return labels[labelCommand] == j.labels[labelCommand] && labels[labelExecution] == j.labels[labelExecution] && labels[labelRun] == j.labels[labelRun]
}

func (j *job) taken(engine string) *tool.Error {
	return &tool.Error{Kind: tool.KindClientError, Code: "NAME_TAKEN", Message: "the " + engine + " already has a " + j.name + " that belongs to somebody else; remove it"}
}
