package container

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// Cluster says where the API of a Kubernetes cluster is. The zero value is no
// cluster.
type Cluster struct {
	API       string // its URL; "" = none
	TokenFile string // read anew for each request: clusters replace it; "" = no token
	CAFile    string // "" = the system's authorities
	Namespace string // of jobs that name none; "" = noetl
}

// kubernetes runs jobs as Jobs of one cluster.
type kubernetes struct {
	wire
	opt Cluster
}

func newKubernetes(o Cluster) (*kubernetes, error) {
	k := &kubernetes{opt: o}
	o.API = strings.TrimRight(o.API, "/")
	if o.API != "" {
		if u, err := url.Parse(o.API); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("the address of the Kubernetes API, %q, is no URL; write one such as https://10.0.0.1:443", o.API)
		}
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true}
	if o.CAFile != "" {
		pool, err := authorities(o.CAFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	k.wire = wire{client: &http.Client{Transport: transport}, base: o.API, prove: k.authorize, reason: messageOf}
	return k, nil
}

func (k *kubernetes) name() string  { return onKubernetes }
func (k *kubernetes) close()        { k.client.CloseIdleConnections() }
func (k *kubernetes) present() bool { return k.opt.API != "" }

func (k *kubernetes) authorize(h http.Header) error {
	if k.opt.TokenFile == "" {
		return nil
	}
	token, err := os.ReadFile(k.opt.TokenFile)
	if err != nil {
		return &tool.Error{Kind: tool.KindAuth, Code: "NO_TOKEN", Message: "the token for the Kubernetes API cannot be read; check NOETL_K8S_TOKEN_FILE on the worker"}
	}
	h.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return nil
}

func jobsPath(namespace string) string {
	return "/apis/batch/v1/namespaces/" + url.PathEscape(namespace) + "/jobs"
}

func corePath(namespace, kind string) string {
	return "/api/v1/namespaces/" + url.PathEscape(namespace) + "/" + kind
}

// start makes the Job first, and then what belongs to it, with the Job as its
// owner: its pods wait for that, and the cluster removes it together with the
// Job, whatever happens to us.
func (k *kubernetes) start(ctx context.Context, call *tool.Call, j *job) (*place, error) {
	namespace := cmp.Or(j.Namespace, k.opt.Namespace, "noetl")
	at := &place{namespace: namespace, name: j.name, made: true}
	body, err := manifest(j)
	if err != nil {
		return nil, err
	}
	made, err := k.create(ctx, namespace, j, body)
	if isStatus(err, http.StatusConflict) {
		var found *jobObject
		if found, err = k.found(ctx, call, namespace, j); err != nil {
			return nil, err
		}
		if found == nil { // an older one was in the way
			made, err = k.create(ctx, namespace, j, body)
		} else {
			made, at.made, at.started = found, false, found.Metadata.Created
		}
	}
	if unclear(err) {
		return at, err
	}
	if err != nil {
		return nil, jobRefused(err)
	}
	at.uid = made.Metadata.UID
	for _, o := range belongings(j, at) {
		what := "create " + strings.ToLower(o.Kind) + " " + o.Metadata.Name
		if err := k.json(ctx, what, http.MethodPost, corePath(namespace, o.path), nil, o, nil); err != nil && !isStatus(err, http.StatusConflict) {
			return at, err
		}
	}
	return at, nil
}

// jobRefused makes what the cluster finds wrong with a Job the author's matter.
func jobRefused(err error) error {
	if isStatus(err, http.StatusUnprocessableEntity) || isStatus(err, http.StatusBadRequest) {
		e := *err.(*tool.Error) //nolint:errorlint // isStatus looked
		e.Kind, e.Code = tool.KindConfig, "JOB_INVALID"
		return &e
	}
	return err
}

func (k *kubernetes) create(ctx context.Context, namespace string, j *job, body any) (*jobObject, error) {
	made := &jobObject{}
	return made, k.json(ctx, "create job "+namespace+"/"+j.name, http.MethodPost, jobsPath(namespace), nil, body, made)
}

// found is the Job that an earlier run made; nil when it had to go because it
// is not ours to wait for.
func (k *kubernetes) found(ctx context.Context, call *tool.Call, namespace string, j *job) (*jobObject, error) {
	o, err := k.read(ctx, namespace, j.name)
	if err != nil {
		return nil, err
	}
	if !j.isOf(o.Metadata.Labels) {
		return nil, j.taken("cluster")
	}
	if o.Metadata.Deleted != nil || j.fresh && o.ended() != nil {
		return nil, k.remove(ctx, &place{namespace: namespace, name: j.name, uid: o.Metadata.UID})
	}
	fmt.Fprintf(call.Log, "job %s/%s is there already; going on with it\n", namespace, j.name)
	return o, nil
}

func (k *kubernetes) read(ctx context.Context, namespace, name string) (*jobObject, error) {
	o := &jobObject{}
	return o, k.json(ctx, "look at job "+namespace+"/"+name, http.MethodGet, jobsPath(namespace)+"/"+url.PathEscape(name), nil, nil, o)
}

func (k *kubernetes) look(ctx context.Context, at *place) (*state, error) {
	o, err := k.read(ctx, at.namespace, at.name)
	if isStatus(err, http.StatusNotFound) || err == nil && at.uid != "" && o.Metadata.UID != at.uid {
		return gone("job"), nil
	}
	if err != nil {
		return nil, err
	}
	var pods podList
	query := url.Values{"labelSelector": {"job-name=" + at.name}}
	if err := k.json(ctx, "look at the pods of job "+at.namespace+"/"+at.name, http.MethodGet, corePath(at.namespace, "pods"), query, nil, &pods); err != nil {
		return nil, err
	}
	return judgeJob(o, pods.newest()), nil
}

// logs reads the output of the newest pod. The cluster does not tell the two
// streams apart.
func (k *kubernetes) logs(ctx context.Context, at *place, s *state, stdout, _ io.Writer) error {
	if s.pod == "" {
		return &tool.Error{Kind: tool.KindNotFound, Code: "NO_POD", Message: "the job has no pod any more"}
	}
	what := "read the output of pod " + at.namespace + "/" + s.pod
	path := corePath(at.namespace, "pods") + "/" + url.PathEscape(s.pod) + "/log"
	resp, err := k.ask(ctx, what, http.MethodGet, path, url.Values{"container": {mainContainer}}, nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(stdout, resp.Body); err != nil {
		return outbound.Failure(ctx, what, 0, err)
	}
	return nil
}

// result is the result file as the kubelet read it: its first 4 KiB.
func (k *kubernetes) result(_ context.Context, _ *place, s *state) []byte { return []byte(s.message) }

// remove deletes the Job; the cluster stops and deletes its pods.
func (k *kubernetes) remove(ctx context.Context, at *place) error {
	options := deleteOptions{APIVersion: "v1", Kind: "DeleteOptions", Propagation: "Background"}
	options.Preconditions.UID = at.uid
	err := k.json(ctx, "delete job "+at.namespace+"/"+at.name, http.MethodDelete, jobsPath(at.namespace)+"/"+url.PathEscape(at.name), nil, options, nil)
	if isStatus(err, http.StatusNotFound) || isStatus(err, http.StatusConflict) { // gone, or another one by now
		return nil
	}
	return err
}
