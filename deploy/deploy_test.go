package deploy_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// program finds a tool that `make deps` installs.
func program(t *testing.T, name string) string {
	t.Helper()
	installed, err := filepath.Abs(filepath.Join("..", "bin", "tools", "bin", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(installed); err == nil {
		return installed
	}
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	if os.Getenv("NOETL_TEST_REQUIRE_TOOLS") != "" {
		t.Fatalf("%s is not installed: run `make deps`", name)
	}
	t.Skipf("%s is not installed: run `make deps`", name)
	return ""
}

// output runs a program that should succeed, or should not.
func output(t *testing.T, ok bool, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); (err == nil) != ok {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	if !ok {
		return append(stdout.Bytes(), stderr.Bytes()...)
	}
	return stdout.Bytes()
}

// object is a manifest of Kubernetes, as far as the tests look.
type object struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec map[string]any `yaml:"spec"`
}

func objects(t *testing.T, manifests []byte) []object {
	t.Helper()
	var list []object
	for _, doc := range bytes.Split(manifests, []byte("\n---")) {
		var o object
		if err := yaml.Unmarshal(doc, &o); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if o.Kind != "" {
			list = append(list, o)
		}
	}
	return list
}

func kinds(list []object) map[string]int {
	n := make(map[string]int)
	for _, o := range list {
		n[o.Kind]++
	}
	return n
}

const everything = "workers.shared.autoscaling.enabled=true,workers.gpu.replicas=1,ingress.enabled=true,ingress.tlsSecret=web,networkPolicy.enabled=true," +
	"serviceMonitor.enabled=true,nats.credentialsSecret.name=nats,server.env.NOETL_DEBUG=true"

func TestTheChartIsWhatKubernetesTakes(t *testing.T) {
	t.Parallel()
	helm, validate := program(t, "helm"), program(t, "kubernetes-validate")
	output(t, true, helm, "lint", "helm/noetl", "--strict")
	for _, c := range []struct {
		name, set string
		want      map[string]int
	}{
		{"as it comes", "", map[string]int{"Deployment": 2, "Service": 1, "PodDisruptionBudget": 2, "ServiceAccount": 1}},
		{"with everything", everything, map[string]int{
			"Deployment": 3, "Service": 1, "PodDisruptionBudget": 2, "ServiceAccount": 1, "Ingress": 1, "NetworkPolicy": 1,
			"ScaledObject": 1, "TriggerAuthentication": 1, "ServiceMonitor": 1, "PodMonitor": 1,
		}},
		{"one server", "server.replicas=1", map[string]int{"Deployment": 2, "Service": 1, "PodDisruptionBudget": 1, "ServiceAccount": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			manifests := output(t, true, helm, "template", "t", "helm/noetl", "--kube-version", "1.30", "--set", c.set)
			got := kinds(objects(t, manifests))
			for kind, n := range c.want {
				if got[kind] != n {
					t.Errorf("%d of kind %s, want %d", got[kind], kind, n)
				}
				delete(got, kind)
			}
			if len(got) > 0 {
				t.Errorf("also %v", got)
			}
			file := filepath.Join(t.TempDir(), "all.yaml")
			if err := os.WriteFile(file, manifests, 0o600); err != nil {
				t.Fatal(err)
			}
			output(t, true, validate, "--strict", "--no-warn", "-k", "1.30", file)
		})
	}
}

func TestTheChartRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	helm := program(t, "helm")
	for set, want := range map[string]string{
		"auth.mode=off":                                  "auth.mode",
		"auth.mode=oidc":                                 "auth.oidc.issuer is needed",
		"server.replicas=0":                              "replicas",
		"server.replica=2":                               "replica",
		"nats.url=http://nats:4222":                      "nats.url",
		"workers.Big.replicas=1":                         "Big",
		"workers.shared.autoscaling.pendingPerReplica=0": "pendingPerReplica",
		"database.urlSecret.name=":                       "urlSecret",
	} {
		if answer := output(t, false, helm, "template", "t", "helm/noetl", "--set", set); !strings.Contains(string(answer), want) {
			t.Errorf("--set %s: no %q in %s", set, want, answer)
		}
	}
}

func TestPodsMayNothingTheyDoNotNeed(t *testing.T) {
	t.Parallel()
	helm := program(t, "helm")
	for _, o := range objects(t, output(t, true, helm, "template", "t", "helm/noetl", "--set", everything)) {
		if o.Kind != "Deployment" {
			continue
		}
		pod := at[map[string]any](t, o.Spec, "template", "spec")
		if !at[bool](t, pod, "securityContext", "runAsNonRoot") || at[bool](t, pod, "automountServiceAccountToken") {
			t.Errorf("%s: runs as root or holds a token of the cluster", o.Metadata.Name)
		}
		container := at[[]any](t, pod, "containers")[0].(map[string]any)
		if at[bool](t, container, "securityContext", "allowPrivilegeEscalation") || !at[bool](t, container, "securityContext", "readOnlyRootFilesystem") {
			t.Errorf("%s: may gain privileges or write to its image", o.Metadata.Name)
		}
		for _, probe := range []string{"startupProbe", "livenessProbe", "readinessProbe"} {
			at[map[string]any](t, container, probe, "httpGet")
		}
		drain := 0
		for _, e := range at[[]any](t, container, "env") {
			if e := e.(map[string]any); e["name"] == "NOETL_WORKER_DRAIN" {
				d, err := time.ParseDuration(e["value"].(string))
				if err != nil {
					t.Fatal(err)
				}
				drain = int(d.Seconds())
			}
		}
		if grace := at[int](t, pod, "terminationGracePeriodSeconds"); grace <= drain {
			t.Errorf("%s: is killed after %d s although running commands have %d s", o.Metadata.Name, grace, drain)
		}
	}
}

// at follows keys into nested maps.
func at[T any](t *testing.T, m map[string]any, keys ...string) T {
	t.Helper()
	var v any = m
	for _, k := range keys {
		v = v.(map[string]any)[k]
	}
	got, ok := v.(T)
	if !ok {
		t.Fatalf("%s is %T", strings.Join(keys, "."), v)
	}
	return got
}

func TestTheImagesAreWellMade(t *testing.T) {
	t.Parallel()
	hadolint := program(t, "hadolint")
	output(t, true, hadolint, "docker/Dockerfile")
	bad := filepath.Join(t.TempDir(), "Dockerfile")
	if err := os.WriteFile(bad, []byte("FROM debian\nRUN apt-get install curl\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, false, hadolint, bad)

	text, err := os.ReadFile("docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"distroless/static", "USER 65532", "CGO_ENABLED=0"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the Dockerfile has no %s", want)
		}
	}
}

func TestTheUnitsAreWhatSystemdTakes(t *testing.T) {
	t.Parallel()
	analyze := program(t, "systemd-analyze")
	dir := t.TempDir()
	var units []string
	for _, unit := range []string{"noetl.service", "noetl-worker@.service"} {
		text, err := os.ReadFile(filepath.Join("systemd", unit))
		if err != nil {
			t.Fatal(err)
		}
		// The program and its user are not on this machine.
		here := strings.NewReplacer("/usr/bin/noetl", "/bin/true", "User=noetl", "User=root", "Group=noetl", "Group=root").Replace(string(text))
		file := filepath.Join(dir, unit)
		if err := os.WriteFile(file, []byte(here), 0o600); err != nil {
			t.Fatal(err)
		}
		units = append(units, file)
	}
	output(t, true, analyze, append([]string{"verify", "--recursive-errors=no", "--man=no"}, units...)...)

	wrong := filepath.Join(dir, "wrong.service")
	if err := os.WriteFile(wrong, []byte("[Service]\nType=exec\nRestart=always\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	output(t, false, analyze, "verify", "--man=no", wrong)
}

// A setting that the program does not know is a setting nobody gets.
func TestOnlyKnownSettingsAreSet(t *testing.T) {
	t.Parallel()
	known := settings(t)
	name := regexp.MustCompile(`\b(NOETL|NATS|WORKER|POSTGRES)_[A-Z0-9_]+\b`)
	var seen []string
	for _, dir := range []string{"docker", "helm", "systemd"} {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, n := range name.FindAllString(string(text), -1) {
				seen = append(seen, n)
				if !slices.Contains(known, n) {
					t.Errorf("%s sets %s, which no command reads", path, n)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) < 10 {
		t.Fatalf("only %d settings were looked at", len(seen))
	}
}

// settings are the names of variables that the source of the program mentions.
func settings(t *testing.T) []string {
	t.Helper()
	name := regexp.MustCompile(`\b(NOETL|NATS|WORKER|POSTGRES)_[A-Z0-9_]+\b`)
	var names []string
	for _, dir := range []string{"../internal/cli", "../internal/node"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, name.FindAllString(string(text), -1)...)
		}
	}
	return names
}
