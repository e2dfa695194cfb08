package container

import (
	"context"
	"io"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// The ends of a job.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	ImagePull = "failed_image_pull"
	OOM       = "failed_oom"
	NodeLost  = "failed_node_lost"
	TimedOut  = "failed_timeout"
)

// The engines.
const (
	onKubernetes = "kubernetes"
	onDocker     = "docker"
)

// engine is where jobs run.
type engine interface {
	name() string
	// start makes a job, unless there is one of its name already. What was made
	// is returned also beside an error.
	start(ctx context.Context, call *tool.Call, j *job) (*place, error)
	look(ctx context.Context, at *place) (*state, error)
	logs(ctx context.Context, at *place, s *state, stdout, stderr io.Writer) error
	// result is what the job left in its result file; nil when there is none.
	result(ctx context.Context, at *place, s *state) []byte
	// remove stops a job and forgets it; one that is gone is no error.
	remove(ctx context.Context, at *place) error
}

// place finds a job at its engine.
type place struct {
	namespace, name, uid string
	started              time.Time // zero when it just did
	made                 bool      // by this very call
}

// state is what a look found.
type state struct {
	end       string // "" while it goes on
	reason    string
	waiting   string // why the container does not start, in the engine's words
	exitCode  *int
	completed time.Time
	pod       string
	message   string // what the container left for the cluster
	succeeded int
	failed    int
	stop      bool // it is to be stopped
	gone      bool // there is nothing left to look at
}

// gone is the state of a job that the engine does not know any more.
func gone(what string) *state {
	return &state{end: NodeLost, gone: true, reason: "the " + what + " is gone: it was deleted, or the engine lost it"}
}

// choose finds the engine by its name.
func (t *Tool) choose(backend string) (engine, error) {
	switch backend {
	case onKubernetes:
		if !t.kube.present() {
			return nil, noEngine("this worker does not run in a cluster; set NOETL_K8S_API_URL, or use backend: docker")
		}
		return t.kube, nil
	case onDocker, "podman":
		if t.docker.broken != nil {
			return nil, noEngine(t.docker.broken.Error())
		}
		if !t.docker.present() {
			return nil, noEngine("there is no Docker engine at " + t.docker.address + "; start one or set DOCKER_HOST")
		}
		return t.docker, nil
	case "", "auto":
		switch {
		case t.kube.present():
			return t.kube, nil
		case t.docker.present():
			return t.docker, nil
		}
		return nil, noEngine("this worker runs in no cluster and finds no Docker engine at " + t.docker.address + "; set NOETL_K8S_API_URL or DOCKER_HOST")
	}
	return nil, tool.ConfigErrorf("backend %q is not one of auto, kubernetes, docker, podman", backend)
}

func noEngine(why string) *tool.Error {
	return &tool.Error{Kind: tool.KindConfig, Code: "NO_CONTAINER_ENGINE", Message: "no container engine here: " + why}
}
