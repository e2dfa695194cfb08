// Package container is the container tool: it starts a job at a Docker engine
// or in a Kubernetes cluster, gives the worker back while the job runs, and
// looks again until it has ended or somebody calls back.
//
// Both engines are spoken to over HTTP. Docker: the Engine API by its paths
// without a version, in the shapes that API 1.41 to 1.51 and Podman's service
// have in common. Kubernetes: batch/v1 Jobs, and pods, pod logs, Secrets and
// ConfigMaps of core v1. The tests run against servers of our own that speak
// these protocols.
//
// The package must not know of workflows or of the control plane.
package container

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
)

const (
	// maxTrouble is how many looks in a row may fail before the step does.
	maxTrouble = 10
	// farewell bounds what is done after a call has ended.
	farewell = 15 * time.Second
)

// Options configure the tool. The zero value finds a Docker engine at its usual
// socket.
type Options struct {
	Interval    time.Duration // until the first look; 0 = 5 s
	MaxInterval time.Duration // between later ones; 0 = 30 s
	MaxWait     time.Duration // of a job that names no timeout; 0 = 24 h
	Kubernetes  Cluster
	Docker      Daemon
	TempDir     string // where long output is gathered; "" = the system's
	// Now tells the time; nil = the clock.
	Now func() time.Time
}

// Tool runs containers. It is safe for concurrent use.
type Tool struct {
	opt    Options
	docker *docker
	kube   *kubernetes
}

var _ tool.Tool = (*Tool)(nil)

// New makes the tool; Close ends its connections. An address of a Docker engine
// that cannot be used matters to those alone who want one.
func New(o Options) (*Tool, error) {
	o.Interval = orElse(o.Interval, 5*time.Second)
	o.MaxInterval = max(orElse(o.MaxInterval, 30*time.Second), o.Interval)
	o.MaxWait = orElse(o.MaxWait, 24*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	k, err := newKubernetes(o.Kubernetes)
	if err != nil {
		return nil, err
	}
	return &Tool{opt: o, docker: newDocker(o.Docker, o.Now), kube: k}, nil
}

func orElse(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// Kind is "container".
func (*Tool) Kind() string { return "container" }

// Close ends connections that are kept open.
func (t *Tool) Close() error {
	t.docker.close()
	t.kube.close()
	return nil
}

// Run implements tool.Tool.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	return t.Do(ctx, call, Action{
		Kind: t.Kind(),
		Spec: func() (*Spec, error) { return readSpec(ctx, call) },
		Data: func(e *End) any { return e },
		Told: true,
	})
}

// Action is how a kind of tool uses jobs.
type Action struct {
	Kind string
	Spec func() (*Spec, error) // asked for when the job is to be started
	Data func(*End) any        // of the step, from how the job ended
	Told bool                  // the end may also be told from outside
}

// note is what a later look has to know.
type note struct {
	Backend   string    `json:"backend"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Started   time.Time `json:"started"`
	Limit     float64   `json:"limit_seconds"` // of the job
	Poll      bool      `json:"poll"`
	Polls     int       `json:"polls"`
	Trouble   int       `json:"trouble,omitempty"` // looks in a row that failed
	Waiting   string    `json:"waiting,omitempty"` // why the container does not start
	Waits     int       `json:"waits,omitempty"`   // looks in a row that found this
}

func (n *note) deadline() time.Time {
	return n.Started.Add(time.Duration(n.Limit * float64(time.Second)))
}

// Do starts a job, or looks how the one stands that an earlier run started.
func (t *Tool) Do(ctx context.Context, call *tool.Call, a Action) (*tool.Result, error) {
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, "the "+a.Kind+" tool", call.Timeout)
	}
	run := &run{tool: t, call: call, action: a}
	var err error
	var res *tool.Result
	if len(call.Again) > 0 {
		res, err = run.look(ctx)
	} else {
		res, err = run.start(ctx)
	}
	if err != nil && ctx.Err() != nil {
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.KindTimeout {
			err = tool.Ended(ctx, "the "+a.Kind+" tool", call.Timeout)
		}
	}
	return res, err
}

// run is one call.
type run struct {
	tool   *Tool
	call   *tool.Call
	action Action
	engine engine
	note   note
}

// start makes the job, or finds the one that a run before a crash has made.
func (r *run) start(ctx context.Context) (*tool.Result, error) {
	spec, err := r.action.Spec()
	if err != nil {
		return nil, err
	}
	if r.engine, err = r.tool.choose(spec.Backend); err != nil {
		return nil, err
	}
	limit := spec.Timeout
	if limit == 0 {
		limit = r.tool.opt.MaxWait
	}
	j := newJob(r.call, r.action.Kind, spec, limit)
	at, err := r.engine.start(ctx, r.call, j)
	if at != nil && at.made && (err != nil || ctx.Err() != nil) {
		r.abandon(ctx, at)
	}
	if err == nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	r.note = note{
		Backend: r.engine.name(), Namespace: at.namespace, Name: at.name, UID: at.uid, Started: r.tool.opt.Now(), Limit: limit.Seconds(), Poll: spec.Poll,
	}
	if !at.started.IsZero() && at.started.Before(r.note.Started) {
		r.note.Started = at.started
	}
	return r.park()
}

// abandon takes back a job that nobody will wait for.
func (r *run) abandon(ctx context.Context, at *place) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	_ = r.engine.remove(ctx, at) // its time limit ends it otherwise
}

// park has the step wait for the next look or for a call.
func (r *run) park() (*tool.Result, error) {
	n := &r.note
	left := max(n.deadline().Sub(r.tool.opt.Now()), time.Second)
	delay := left
	if n.Poll || !r.action.Told {
		delay = min(left, r.tool.opt.interval(n.Polls))
	}
	again, err := tool.Encode(n)
	if err != nil {
		return nil, err
	}
	p := &event.Park{Delay: delay.Seconds()}
	if r.action.Told {
		p.Callback = "container:" + n.UID
	}
	return &tool.Result{Park: p, Again: again}, nil
}

// interval doubles from look to look.
func (o *Options) interval(polls int) time.Duration {
	d := o.Interval
	for range min(polls, 32) {
		if d *= 2; d >= o.MaxInterval {
			return o.MaxInterval
		}
	}
	return d
}

// look finds out how the job stands. A context that ends here leaves the job
// alone: another worker goes on with it.
func (r *run) look(ctx context.Context) (*tool.Result, error) {
	n := &r.note
	if err := json.Unmarshal(r.call.Again, n); err != nil || n.Name == "" {
		return nil, &tool.Error{Kind: tool.KindInternal, Code: "NOTE", Message: "the note on the job that was started cannot be read; execute the step again"}
	}
	var err error
	if r.engine, err = r.tool.choose(n.Backend); err != nil {
		return nil, err
	}
	at := &place{namespace: n.Namespace, name: n.Name, uid: n.UID}
	s, err := r.engine.look(ctx, at)
	if err != nil {
		return r.troubled(ctx, err)
	}
	n.Polls, n.Trouble = n.Polls+1, 0
	r.judge(s)
	if s.end == "" {
		return r.park()
	}
	return r.finish(ctx, at, s)
}

// troubled goes on waiting when a look failed for a reason that may pass.
func (r *run) troubled(ctx context.Context, err error) (*tool.Result, error) {
	e, ok := errors.AsType[*tool.Error](err)
	r.note.Trouble++
	r.note.Polls++
	if ctx.Err() != nil || !ok || !e.Retryable || r.note.Trouble >= maxTrouble {
		return nil, err
	}
	return r.park()
}

// judge ends what will not come to an end by itself: a job out of time, and one
// whose container cannot start.
func (r *run) judge(s *state) {
	n := &r.note
	if s.end != "" {
		return
	}
	if s.waiting != n.Waiting {
		n.Waiting, n.Waits = s.waiting, 0
	}
	if s.waiting != "" {
		n.Waits++
	}
	switch patience, hopeless := hopeless[s.waiting]; {
	case hopeless && n.Waits >= patience.looks:
		s.end, s.stop = patience.end, true
	case !r.tool.opt.Now().Before(n.deadline()):
		s.end, s.reason, s.stop = TimedOut, "the job did not end within "+time.Duration(n.Limit*float64(time.Second)).String(), true
	}
}

// hopeless are reasons of a cluster for a container that does not start, with
// the end this is and how often it must be seen: some of them pass.
var hopeless = map[string]struct {
	end   string
	looks int
}{
	"ErrImagePull": {ImagePull, 3}, "ImagePullBackOff": {ImagePull, 2}, "RegistryUnavailable": {ImagePull, 3},
	"InvalidImageName": {ImagePull, 1}, "ErrImageNeverPull": {ImagePull, 1}, "ImageInspectError": {ImagePull, 2},
	"CreateContainerConfigError": {Failed, 4}, "CreateContainerError": {Failed, 3}, "RunContainerError": {Failed, 3},
}
