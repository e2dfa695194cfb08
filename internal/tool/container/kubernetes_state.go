package container

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// What we read of a Job and its pods.
type (
	jobObject struct {
		Metadata metadata `json:"metadata"`
		Status   struct {
			Conditions []condition `json:"conditions"`
			Succeeded  int         `json:"succeeded"`
			Failed     int         `json:"failed"`
			Completed  time.Time   `json:"completionTime"`
		} `json:"status"`
	}
	metadata struct {
		Name    string            `json:"name"`
		UID     string            `json:"uid"`
		Labels  map[string]string `json:"labels"`
		Created time.Time         `json:"creationTimestamp"`
		Deleted *time.Time        `json:"deletionTimestamp"`
	}
	condition struct {
		Type    string    `json:"type"`
		Status  string    `json:"status"`
		Reason  string    `json:"reason"`
		Message string    `json:"message"`
		At      time.Time `json:"lastTransitionTime"`
	}
	podList struct {
		Items []podObject `json:"items"`
	}
	podObject struct {
		Metadata metadata `json:"metadata"`
		Status   struct {
			Phase      string            `json:"phase"`
			Reason     string            `json:"reason"`
			Message    string            `json:"message"`
			Conditions []condition       `json:"conditions"`
			Containers []containerStatus `json:"containerStatuses"`
		} `json:"status"`
	}
	containerStatus struct {
		Name  string          `json:"name"`
		State containerStates `json:"state"`
		Last  containerStates `json:"lastState"`
	}
	containerStates struct {
		Waiting *struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"waiting"`
		Terminated *terminated `json:"terminated"`
	}
	terminated struct {
		ExitCode int       `json:"exitCode"`
		Reason   string    `json:"reason"`
		Message  string    `json:"message"`
		Finished time.Time `json:"finishedAt"`
	}
)

// newest is the pod that was made last; nil when there is none.
func (l *podList) newest() *podObject {
	if len(l.Items) == 0 {
		return nil
	}
	last := slices.MaxFunc(l.Items, func(a, b podObject) int {
		return cmp.Or(a.Metadata.Created.Compare(b.Metadata.Created), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return &last
}

// ended is the condition that ended a Job; nil while it goes on.
func (o *jobObject) ended() *condition {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Status == "True" && (c.Type == "Complete" || c.Type == "Failed") {
			return c
		}
	}
	return nil
}

// main is how the job's container stands in a pod.
func (p *podObject) main() *containerStatus {
	for i := range p.Status.Containers {
		if c := &p.Status.Containers[i]; c.Name == mainContainer {
			return c
		}
	}
	return &containerStatus{}
}

// lostReasons are a pod's words for having lost its place.
var lostReasons = []string{"NodeLost", "Evicted", "NodeShutdown", "Shutdown", "Terminated", "Preempting", "NodeAffinity", "UnexpectedAdmissionError"}

// lost tells why a pod lost its place; "" when it did not.
func (p *podObject) lost() string {
	for _, c := range p.Status.Conditions {
		if c.Type == "DisruptionTarget" && c.Status == "True" {
			return sentence(c.Reason, c.Message)
		}
	}
	if slices.Contains(lostReasons, p.Status.Reason) {
		return sentence(p.Status.Reason, p.Status.Message)
	}
	return ""
}

func sentence(reason, message string) string {
	if reason == "" || message == "" {
		return reason + message
	}
	return reason + ": " + message
}

// judgeJob tells how a Job stands from what the cluster says of it and of its
// newest pod.
func judgeJob(o *jobObject, p *podObject) *state {
	s := &state{succeeded: o.Status.Succeeded, failed: o.Status.Failed}
	var end *terminated
	if p != nil {
		s.pod = p.Metadata.Name
		main := p.main()
		if end = main.State.Terminated; end == nil {
			end = main.Last.Terminated
		}
		if w := main.State.Waiting; w != nil {
			s.waiting = w.Reason
			if _, known := hopeless[w.Reason]; known {
				s.reason = sentence(w.Reason, w.Message)
			}
		}
	}
	c := o.ended()
	if c == nil {
		return s
	}
	s.completed = cmp.Or(o.Status.Completed, c.At)
	if end != nil {
		code := end.ExitCode
		s.exitCode, s.message = &code, end.Message
	}
	if c.Type == "Complete" {
		s.end, s.reason = Succeeded, ""
		return s
	}
	s.end, s.reason = why(c, p, end, s.reason)
	return s
}

// why tells the ends of a failed Job apart.
func why(c *condition, p *podObject, end *terminated, waiting string) (state, reason string) {
	lost := ""
	if p != nil {
		lost = p.lost()
	}
	switch {
	case end != nil && end.Reason == "OOMKilled":
		return OOM, end.Reason
	case c.Reason == "DeadlineExceeded":
		return TimedOut, sentence(c.Reason, c.Message)
	case lost != "":
		return NodeLost, lost
	case end != nil:
		return Failed, sentence(cmp.Or(end.Reason, c.Reason), fmt.Sprintf("exit code %d", end.ExitCode))
	case p == nil:
		return NodeLost, sentence(c.Reason, "its pod is gone")
	case waiting != "":
		return Failed, waiting
	}
	return Failed, sentence(c.Reason, c.Message)
}
