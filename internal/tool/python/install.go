package python

import (
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

// installLimit bounds the making of one environment, whatever the step allows.
const installLimit = 20 * time.Minute

// install makes a virtual environment and puts packages into it, with uv where
// there is one.
func install(ctx context.Context, base interpreter, l *lease, specs []string, log io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	if uv, err := exec.LookPath("uv"); err == nil {
		if _, err := runInstall(ctx, log, uv, "venv", "--python", base.path, l.dir); err != nil {
			return err
		}
		_, err := runInstall(ctx, log, uv, append([]string{"pip", "install", "--python", l.python(), "--"}, specs...)...)
		return err
	}
	if _, err := runInstall(ctx, log, base.path, "-m", "venv", "--without-pip", l.dir); err != nil {
		return err
	}
	pip := append([]string{"install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--"}, specs...)
	said, err := runInstall(ctx, log, base.path, append([]string{"-m", "pip", "--python", l.python()}, pip...)...)
	if err == nil || !noSuchPip.MatchString(said) {
		return err
	}
	// The interpreter has no pip, or one that installs only for itself: a pip
	// in the environment takes longer to make, and always works.
	if _, err := runInstall(ctx, log, l.python(), "-m", "ensurepip"); err != nil {
		return err
	}
	_, err = runInstall(ctx, log, l.python(), append([]string{"-m", "pip"}, pip...)...)
	return err
}

// runInstall runs one program and gives what it said at the end.
func runInstall(ctx context.Context, log io.Writer, program string, args ...string) (string, error) {
	said := tool.NewCapture(16 << 10)
	out := tool.LiveLog(io.MultiWriter(said, log))
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = installEnviron()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// Installers run compilers: the whole group has to go.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if err == nil {
		return "", nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return said.String(), installError(said.String(), err)
}

// installEnviron is a clean environment with what leads to a package index.
func installEnviron() []string {
	extra := map[string]string{}
	for _, pair := range os.Environ() {
		name, v, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name)
		if strings.HasPrefix(upper, "PIP_") || strings.HasPrefix(upper, "UV_") || strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(upper, "SSL_CERT_") || upper == "REQUESTS_CA_BUNDLE" {
			extra[name] = v
		}
	}
	return tool.CleanEnviron(extra)
}

var (
	noSuchPip   = regexp.MustCompile(`No module named pip|no such option: --python`)
	unreachable = regexp.MustCompile(`(?i)NewConnectionError|name resolution|Connection refused|Connection reset|timed out|ConnectTimeout|ProxyError|error sending request|dns error|network is unreachable`)
	complaint   = regexp.MustCompile(`(?m)^\s*(ERROR:|error:|×|╰─▶).*$`)
)

// installError explains a failed installer by what it said.
func installError(said string, err error) *tool.Error {
	why := lastLine(said)
	if lines := complaint.FindAllString(said, 3); len(lines) > 0 {
		why = strings.TrimSpace(strings.Join(lines, " "))
	}
	if why == "" {
		why = err.Error()
	}
	if len(why) > 600 {
		why = why[:600] + "…"
	}
	why = strings.ToValidUTF8(why, "\uFFFD")
	if unreachable.MatchString(said) {
		return &tool.Error{Kind: tool.KindConnection, Code: "DEPS_INDEX", Message: "deps: the package index cannot be reached: " + why, Retryable: true}
	}
	return &tool.Error{Kind: tool.KindConfig, Code: "DEPS_INSTALL", Message: "deps cannot be installed: " + why}
}
