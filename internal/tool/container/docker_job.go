package container

import (
	"archive/tar"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
	"github.com/noetl/noetl-go/internal/tool/process"
)

// containerBody is what the engine is asked to create.
type containerBody struct {
	Image      string
	Entrypoint []string `json:",omitempty"`
	Cmd        []string `json:",omitempty"`
	Env        []string
	Labels     map[string]string
	HostConfig hostConfig
}

type hostConfig struct {
	Memory        int64         `json:",omitempty"`
	NanoCPUs      int64         `json:"NanoCpus,omitempty"`
	RestartPolicy restartPolicy `json:",omitzero"`
	Mounts        []dockerMount `json:",omitempty"`
}

type restartPolicy struct {
	Name              string
	MaximumRetryCount int `json:",omitempty"`
}

type dockerMount struct {
	Type         string // volume or tmpfs
	Source       string `json:",omitempty"`
	Target       string
	ReadOnly     bool          `json:",omitempty"`
	TmpfsOptions *tmpfsOptions `json:",omitempty"`
}

type tmpfsOptions struct {
	SizeBytes int64 `json:",omitempty"`
}

// describe says a job in the engine's terms. What only a cluster has is refused
// rather than left out.
func describe(j *job) (*containerBody, error) {
	b := &containerBody{Image: j.Image, Entrypoint: j.Command, Cmd: j.Args, Labels: j.labels, Env: []string{}}
	for _, v := range j.Env {
		if v.Secret != "" {
			return nil, onlyCluster("env " + v.Name + ": value_from")
		}
		b.Env = append(b.Env, v.Name+"="+v.Value)
	}
	for _, name := range tool.SortedKeys(j.Hidden) {
		b.Env = append(b.Env, name+"="+j.Hidden[name])
	}
	switch {
	case len(j.NodeSelector) > 0:
		return nil, onlyCluster("node_selector")
	case len(j.Tolerations) > 0:
		return nil, onlyCluster("tolerations")
	case j.ServiceAccount != "":
		return nil, onlyCluster("service_account")
	}
	if j.BackoffLimit > 0 {
		b.HostConfig.RestartPolicy = restartPolicy{Name: "on-failure", MaximumRetryCount: j.BackoffLimit}
	}
	var err error
	if text := j.Limits["memory"]; text != "" {
		if b.HostConfig.Memory, err = process.Bytes(text); err != nil {
			return nil, tool.ConfigErrorf("resources.limits.memory: %v", err)
		}
	}
	if text := j.Limits["cpu"]; text != "" {
		if b.HostConfig.NanoCPUs, err = nanoCPUs(text); err != nil {
			return nil, err
		}
	}
	b.HostConfig.Mounts, err = dockerMounts(j)
	return b, err
}

func onlyCluster(field string) *tool.Error {
	return tool.ConfigErrorf("%s needs a cluster: the docker backend has no such thing; remove it or use backend: kubernetes", field)
}

// nanoCPUs reads 0.5 and 500m.
func nanoCPUs(text string) (int64, error) {
	number, unit := strings.TrimSpace(text), float64(1e9)
	if milli, ok := strings.CutSuffix(number, "m"); ok {
		number, unit = milli, 1e6
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(n) || n <= 0 || n > 1e6 {
		return 0, tool.ConfigErrorf("resources.limits.cpu %q is not a number of processors such as 2, 0.5 or 500m", text)
	}
	return int64(n * unit), nil
}

func dockerMounts(j *job) ([]dockerMount, error) {
	volumes := map[string]Volume{}
	for _, v := range j.Volumes {
		if v.ConfigMap != nil || v.Secret != nil {
			return nil, onlyCluster("volume " + v.Name)
		}
		volumes[v.Name] = v
	}
	var out []dockerMount
	for _, m := range j.Mounts {
		v, ok := volumes[m.Name]
		if !ok {
			return nil, tool.ConfigErrorf("volume_mounts name %q, which is none of volumes", m.Name)
		}
		if m.SubPath != "" {
			return nil, onlyCluster("volume_mounts: sub_path")
		}
		d := dockerMount{Type: "volume", Target: m.Path, ReadOnly: m.ReadOnly}
		switch {
		case v.Claim != nil:
			d.Source, d.ReadOnly = v.Claim.Name, m.ReadOnly || v.Claim.ReadOnly
		case strings.EqualFold(v.EmptyDir.Medium, "memory"):
			d.Type = "tmpfs"
			if v.EmptyDir.SizeLimit != "" {
				size, err := process.Bytes(v.EmptyDir.SizeLimit)
				if err != nil {
					return nil, tool.ConfigErrorf("volume %s: size_limit: %v", v.Name, err)
				}
				d.TmpfsOptions = &tmpfsOptions{SizeBytes: size}
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// inspected is what the engine tells of a container.
type inspected struct {
	ID    string `json:"Id"`
	State struct {
		Status     string
		ExitCode   int
		OOMKilled  bool
		Error      string
		StartedAt  time.Time
		FinishedAt time.Time
	}
	Config struct {
		Labels map[string]string
	}
}

func (d *docker) inspect(ctx context.Context, id string) (*inspected, error) {
	c := &inspected{}
	return c, d.json(ctx, "look at container "+id, http.MethodGet, "/containers/"+id+"/json", nil, nil, c)
}

func (d *docker) look(ctx context.Context, at *place) (*state, error) {
	d.sweep(ctx)
	c, err := d.inspect(ctx, at.uid)
	if isStatus(err, http.StatusNotFound) {
		return gone("container"), nil
	}
	if err != nil {
		return nil, err
	}
	return c.state(), nil
}

func (c *inspected) state() *state {
	s := &state{}
	if c.State.Status != "exited" && c.State.Status != "dead" {
		return s
	}
	code := c.State.ExitCode
	s.exitCode, s.completed, s.reason = &code, c.State.FinishedAt, c.State.Error
	switch {
	case c.State.OOMKilled:
		s.end, s.reason = OOM, "OOMKilled"
	case c.State.Status == "dead":
		s.end = NodeLost
	case code == 0:
		s.end, s.succeeded = Succeeded, 1
		return s
	default:
		s.end = Failed
		if s.reason == "" {
			s.reason = fmt.Sprintf("exit code %d", code)
		}
	}
	s.failed = 1
	return s
}

// logs splits the engine's stream: frames of a header of 8 bytes, the stream's
// number first and the length last, and the text.
func (d *docker) logs(ctx context.Context, at *place, _ *state, stdout, stderr io.Writer) error {
	what := "read the output of container " + at.name
	resp, err := d.ask(ctx, what, http.MethodGet, "/containers/"+at.uid+"/logs", url.Values{"stdout": {"1"}, "stderr": {"1"}}, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for {
		var head [8]byte
		if _, err := io.ReadFull(resp.Body, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return outbound.Failure(ctx, what, 0, err)
		}
		to := stdout
		if head[0] == 2 {
			to = stderr
		}
		if _, err := io.CopyN(to, resp.Body, int64(binary.BigEndian.Uint32(head[4:]))); err != nil {
			return outbound.Failure(ctx, what, 0, err)
		}
	}
}

// result reads the result file out of the ended container.
func (d *docker) result(ctx context.Context, at *place, _ *state) []byte {
	resp, err := d.ask(ctx, "read the result of container "+at.name, http.MethodGet, "/containers/"+at.uid+"/archive", url.Values{"path": {ResultFile}}, nil, nil)
	if err != nil {
		return nil // most leave none
	}
	defer resp.Body.Close()
	r := tar.NewReader(io.LimitReader(resp.Body, 2*maxAnswer))
	if h, err := r.Next(); err != nil || h.Typeflag != tar.TypeReg {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	if err != nil || len(text) > maxAnswer {
		return nil
	}
	return text
}

func (d *docker) remove(ctx context.Context, at *place) error {
	resp, err := d.ask(ctx, "remove container "+at.name, http.MethodDelete, "/containers/"+at.uid, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
	if isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusConflict) { // gone, or going
		return nil
	}
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

const (
	sweepEvery = time.Minute
	sweepMost  = 200
	// overtime is how long after its time limit a container may still run: until
	// then whoever waits for it sees to that.
	overtime = 10 * time.Minute
)

// sweep removes containers of ours that ended long enough ago, and stops those
// that run beyond their time because nobody looks at them any more. The engine
// does neither by itself.
func (d *docker) sweep(ctx context.Context) {
	d.mu.Lock()
	due := d.now().Sub(d.swept) >= sweepEvery
	if due {
		d.swept = d.now()
	}
	d.mu.Unlock()
	if !due {
		return
	}
	filters, _ := json.Marshal(map[string][]string{"label": {labelTTL, labelLimit, labelCommand}, "status": {"exited", "dead", "running"}})
	var list []struct { // the newest first
		ID     string `json:"Id"`
		Labels map[string]string
	}
	query := url.Values{"all": {"1"}, "filters": {string(filters)}}
	if d.json(ctx, "list containers", http.MethodGet, "/containers/json", query, nil, &list) != nil {
		return // the next one may
	}
	for _, c := range list[max(len(list)-sweepMost, 0):] {
		if seen, err := d.inspect(ctx, c.ID); err == nil && seen.overdue(d.now(), c.Labels) {
			_ = d.remove(ctx, &place{uid: c.ID, name: c.ID})
		}
	}
}

// overdue tells whether a container has outlived its time.
func (c *inspected) overdue(now time.Time, labels map[string]string) bool {
	since, name, more := c.State.FinishedAt, labelTTL, time.Duration(0)
	if c.state().end == "" {
		since, name, more = c.State.StartedAt, labelLimit, overtime
	}
	seconds, err := strconv.Atoi(labels[name])
	return err == nil && !since.IsZero() && now.Sub(since) >= time.Duration(seconds)*time.Second+more
}
