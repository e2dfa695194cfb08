package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const page = "../docs/deployment.md"

// TestThePageAboutMachinesIsRight runs the commands of the page in a shell in
// which the programs that would change a machine only write down how they were
// called, and holds each call against the files it is about.
func TestThePageAboutMachinesIsRight(t *testing.T) {
	t.Parallel()
	calls := typed(t)
	images := map[string]bool{}
	for _, c := range calls {
		switch program, args := c[0], c[1:]; program {
		case "make":
			contains(t, "../Makefile", args[0]+":")
		case "install":
			checkInstall(t, args)
		case "systemctl":
			unit, _, instance := strings.Cut(args[len(args)-1], "@")
			if instance {
				unit += "@"
			}
			exists(t, "systemd/"+unit+".service")
		case "docker":
			checkDocker(t, args, images)
		case "kubectl":
			_, pair, _ := strings.Cut(args[len(args)-1], "=")
			key, _, _ := strings.Cut(pair, "=")
			contains(t, "helm/noetl/values.yaml", "{name: "+args[len(args)-2]+", key: "+key+"}")
		case "helm":
			t.Run(args[0], func(t *testing.T) { checkHelm(t, args) })
		case "noetl":
			for _, a := range args {
				if strings.HasPrefix(a, "--") {
					contains(t, "../docs/cli.md", "`"+a+" ") // written from the program itself
				}
			}
			contains(t, "../docs/cli.md", "### noetl "+args[0]+" "+args[1]+"\n")
		}
	}
	if len(calls) < 18 {
		t.Errorf("the page has %d commands: are they still found?", len(calls))
	}
}

// typed runs the blocks of the page and returns the calls they make.
func typed(t *testing.T) [][]string {
	t.Helper()
	dir, log := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"deploy": here, "systemd": filepath.Join(here, "systemd")} { // the sources; an unpacked release
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	bin := t.TempDir()
	note := "#!/bin/bash\n{ printf '%s' \"${0##*/}\"; printf '\\t%s' \"$@\"; echo; } >>'" + log + "'\n"
	for _, name := range []string{"make", "install", "useradd", "systemctl", "docker", "kubectl", "helm", "noetl"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(note), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	script := "set -euo pipefail\n"
	for _, m := range regexp.MustCompile("(?s)```(\\w*)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if m[1] != "sh" {
			t.Errorf("a block in %q is looked at by nobody:\n%s", m[1], m[2])
		}
		script += m[2]
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	written, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var calls [][]string
	for line := range strings.Lines(string(written)) {
		calls = append(calls, strings.Split(strings.TrimRight(line, "\n"), "\t"))
	}
	return calls
}

// checkInstall looks for the files that are copied: all words but the last.
func checkInstall(t *testing.T, args []string) {
	t.Helper()
	for _, a := range args[:len(args)-1] {
		if strings.HasPrefix(a, "systemd/") {
			exists(t, a)
		}
	}
}

func checkDocker(t *testing.T, args []string, images map[string]bool) {
	t.Helper()
	after := func(flag string) string {
		if at := slices.Index(args, flag); at >= 0 {
			return args[at+1]
		}
		return ""
	}
	if args[0] == "run" {
		if image := args[len(args)-1]; !images[image] {
			t.Errorf("docker run of %s, which the page does not build", image)
		}
		port, _, _ := strings.Cut(after("-p"), ":")
		contains(t, "docker/Dockerfile", "EXPOSE "+port)
		return
	}
	images[after("-t")] = true
	file := strings.TrimPrefix(after("-f"), "deploy/")
	arg, _, _ := strings.Cut(after("--build-arg"), "=")
	contains(t, file, "ARG "+arg+"=")
	if stage := after("--target"); stage != "" {
		contains(t, file, " AS "+stage+"\n")
	}
}

// checkHelm renders what would be installed; unknown values are refused by the
// chart's schema.
func checkHelm(t *testing.T, args []string) {
	helm := program(t, "helm")
	given := slices.DeleteFunc(slices.Clone(args[3:]), func(a string) bool { return a == "--reuse-values" })
	output(t, true, helm, append([]string{"template", args[1], strings.TrimPrefix(args[2], "deploy/"), "--kube-version", "1.30"}, given...)...)
}

// TestTheValuesOnThePageExist looks for the values that the page lists.
func TestTheValuesOnThePageExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile("helm/noetl/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| Value | Default | |\n")
	named := regexp.MustCompile("`([a-z][\\w.<>]*)`")
	found := 0
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 {
			break
		}
		for _, m := range named.FindAllStringSubmatch(cells[1], -1) {
			found++
			var at any = values
			for part := range strings.SplitSeq(strings.ReplaceAll(m[1], "<pool>", "shared"), ".") {
				inner, _ := at.(map[string]any)
				if at = inner[part]; at == nil {
					t.Errorf("there is no value %s", m[1])
					break
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("the page lists %d values", found)
	}
}

func exists(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func contains(t *testing.T, file, what string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), what) {
		t.Errorf("%s has no %q", file, what)
	}
}
