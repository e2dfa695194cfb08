package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSettingsOfContainersAreReadOrRefused(t *testing.T) {
	for name, tc := range map[string]struct{ variable, text, says string }{
		"a blank":               {"NOETL_K8S_API_URL", " ", "NOETL_K8S_API_URL is blank"},
		"an interval of a word": {"NOETL_CONTAINER_POLL_INTERVAL_SECS", "soon", "NOETL_CONTAINER_POLL_INTERVAL_SECS: \"soon\" is not a whole number"},
		"no wait at all":        {"NOETL_CONTAINER_POLL_MAX_WAIT_SECS", "0", "NOETL_CONTAINER_POLL_MAX_WAIT_SECS"},
		"a maximum below":       {"NOETL_CONTAINER_POLL_MAX_INTERVAL_SECS", "2", "NOETL_CONTAINER_POLL_MAX_INTERVAL_SECS: 2s is below"},
		"an address of nothing": {"NOETL_K8S_API_URL", "10.0.0.1", "is no URL"},
		"an authority nowhere":  {"NOETL_K8S_CA_FILE", "/nowhere/ca.crt", "certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NOETL_CONTAINER_POLL_INTERVAL_SECS", "10")
			t.Setenv(tc.variable, tc.text)
			o, err := readProcessOptions("", 4, false)
			if err == nil {
				_, err = newToolbox(nil, o, Outbound{})
			}
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOETL_CONTAINER_POLL_MAX_WAIT_SECS", "3600")
	t.Setenv("NOETL_K8S_TOKEN_FILE", token)
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")
	t.Setenv("DOCKER_HOST", "tcp://engine:2375")
	o, err := readContainerOptions()
	if err != nil {
		t.Fatal(err)
	}
	if o.MaxWait != time.Hour || o.Kubernetes.API != "https://[fd00::1]:6443" || o.Kubernetes.TokenFile != token || o.Docker.Host != "tcp://engine:2375" {
		t.Errorf("got %+v", o)
	}
}
