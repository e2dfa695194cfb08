package container

import (
	"encoding/base64"
	"fmt"
	"math"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	mainContainer = "main"
	scriptVolume  = "noetl-scripts"
	// maxFiles is what a ConfigMap holds.
	maxFiles = 1000 << 10
)

// The objects we write, as the API has them.
type (
	object map[string]any

	meta struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels,omitempty"`
		Owners []owner           `json:"ownerReferences,omitempty"`
	}
	owner struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Name       string `json:"name"`
		UID        string `json:"uid"`
	}
	belonging struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   meta              `json:"metadata"`
		Type       string            `json:"type,omitempty"`
		Data       map[string]string `json:"data,omitempty"`
		StringData map[string]string `json:"stringData,omitempty"`
		path       string
	}
	deleteOptions struct {
		APIVersion    string `json:"apiVersion"`
		Kind          string `json:"kind"`
		Propagation   string `json:"propagationPolicy"`
		Preconditions struct {
			UID string `json:"uid,omitempty"`
		} `json:"preconditions"`
	}
)

// manifest is the Job.
func manifest(j *job) (object, error) {
	pod := object{"restartPolicy": j.RestartPolicy}
	main := object{
		"name": mainContainer, "image": j.Image, "env": environment(j),
		// The kubelet reads this file when the container has ended: the one way to
		// a file that needs no rights and no helper inside the pod.
		"terminationMessagePath": ResultFile, "terminationMessagePolicy": "File",
	}
	volumes, mounts := append([]Volume(nil), j.Volumes...), append([]Mount(nil), j.Mounts...)
	if len(j.Files) > 0 {
		size := 0
		for _, text := range j.Files {
			size += len(text)
		}
		if size > maxFiles {
			return nil, &tool.Error{Kind: tool.KindResourceLimit, Code: "SCRIPT_TOO_LARGE", Message: fmt.Sprintf("the script is larger than the %d KiB that a cluster takes; put it into the image", maxFiles>>10)}
		}
		volumes = append(volumes, Volume{Name: scriptVolume, ConfigMap: &configMap{Name: j.name}})
		mounts = append(mounts, Mount{Name: scriptVolume, Path: ScriptDir, ReadOnly: true})
	}
	resources := object{}
	set(resources, "requests", j.Requests, len(j.Requests) > 0)
	set(resources, "limits", j.Limits, len(j.Limits) > 0)
	set(main, "resources", resources, len(resources) > 0)
	set(main, "command", j.words(j.Command), len(j.Command) > 0)
	set(main, "args", j.words(j.Args), len(j.Args) > 0)
	set(main, "imagePullPolicy", j.PullPolicy, j.PullPolicy != "")
	set(main, "volumeMounts", mounts, len(mounts) > 0)
	set(pod, "volumes", volumes, len(volumes) > 0)
	set(pod, "serviceAccountName", j.ServiceAccount, j.ServiceAccount != "")
	set(pod, "nodeSelector", j.NodeSelector, len(j.NodeSelector) > 0)
	set(pod, "tolerations", j.Tolerations, len(j.Tolerations) > 0)
	set(pod, "imagePullSecrets", []object{{"name": pullSecret(j)}}, len(j.Registry) > 0)
	pod["containers"] = []object{main}
	return object{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": meta{Name: j.name, Labels: j.labels},
		"spec": object{
			"backoffLimit": j.BackoffLimit, "activeDeadlineSeconds": max(int64(math.Ceil(j.limit.Seconds())), 1),
			"ttlSecondsAfterFinished": int64(j.TTL.Seconds()),
			"template":                object{"metadata": object{"labels": j.labels}, "spec": pod},
		},
	}, nil
}

func set(o object, name string, v any, when bool) {
	if when {
		o[name] = v
	}
}

func pullSecret(j *job) string { return j.name[:min(len(j.name), longestName-5)] + "-pull" }

// environment lists the variables; hidden ones are kept in a Secret.
func environment(j *job) []object {
	out := make([]object, 0, len(j.Env)+len(j.Hidden))
	from := func(name, secret, key string) object {
		return object{"name": name, "valueFrom": object{"secretKeyRef": object{"name": secret, "key": key}}}
	}
	for _, v := range j.Env {
		if v.Secret != "" {
			out = append(out, from(v.Name, v.Secret, v.Key))
			continue
		}
		value := v.Value
		if v.exact {
			value = literal(value)
		}
		out = append(out, object{"name": v.Name, "value": value})
	}
	for _, name := range tool.SortedKeys(j.Hidden) {
		out = append(out, from(name, j.name, name))
	}
	return out
}

// words are those of a command, as the cluster is to read them.
func (j *job) words(list []string) []string {
	if !j.Exact {
		return list
	}
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = literal(text)
	}
	return out
}

// literal keeps the cluster from reading $(NAME) in a value as a reference.
func literal(text string) string {
	out := make([]byte, 0, len(text))
	for i := range len(text) {
		if text[i] == '$' && i+1 < len(text) && (text[i+1] == '(' || text[i+1] == '$') {
			out = append(out, '$')
		}
		out = append(out, text[i])
	}
	return string(out)
}

// belongings are the objects that a Job owns.
func belongings(j *job, at *place) []*belonging {
	var out []*belonging
	add := func(kind, path, name string) *belonging {
		o := &belonging{APIVersion: "v1", Kind: kind, path: path, Metadata: meta{
			Name: name, Labels: j.labels, Owners: []owner{{"batch/v1", "Job", at.name, at.uid}},
		}}
		out = append(out, o)
		return o
	}
	if len(j.Files) > 0 {
		add("ConfigMap", "configmaps", j.name).Data = j.Files
	}
	if len(j.Hidden) > 0 {
		o := add("Secret", "secrets", j.name)
		o.Type, o.StringData = "Opaque", j.Hidden
	}
	if len(j.Registry) > 0 {
		auths := object{}
		for _, r := range j.Registry {
			auths[r.Server] = object{"username": r.User, "password": r.Password, "auth": base64.StdEncoding.EncodeToString([]byte(r.User + ":" + r.Password))}
		}
		text, _ := tool.Encode(object{"auths": auths}) // text always has a JSON form
		o := add("Secret", "secrets", pullSecret(j))
		o.Type, o.StringData = "kubernetes.io/dockerconfigjson", map[string]string{".dockerconfigjson": string(text)}
	}
	return out
}
