package node

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/noetl/noetl-go/internal/tool/container"
)

// accountDir is where a cluster puts what proves who a pod is.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount/"

// readContainerOptions reads where jobs run from the environment, and how often
// to look at them. A wrong or blank setting of ours is an error; those that
// belong to Docker and to the cluster are as others made them.
func readContainerOptions() (o container.Options, err error) {
	text := func(to *string) func(string) error { return func(s string) error { *to = s; return nil } }
	k := &o.Kubernetes
	for name, read := range map[string]func(string) error{
		"NOETL_CONTAINER_POLL_INTERVAL_SECS":     between(&o.Interval, 1, 86_400, time.Second),
		"NOETL_CONTAINER_POLL_MAX_INTERVAL_SECS": between(&o.MaxInterval, 1, 86_400, time.Second),
		"NOETL_CONTAINER_POLL_MAX_WAIT_SECS":     between(&o.MaxWait, 1, 365*86_400, time.Second),
		"NOETL_K8S_API_URL":                      text(&k.API),
		"NOETL_K8S_TOKEN_FILE":                   text(&k.TokenFile),
		"NOETL_K8S_CA_FILE":                      text(&k.CAFile),
		"NOETL_K8S_NAMESPACE":                    text(&k.Namespace),
	} {
		if err := readSetting(name, read); err != nil {
			return o, err
		}
	}
	if o.MaxInterval > 0 && o.MaxInterval < o.Interval {
		return o, fmt.Errorf("NOETL_CONTAINER_POLL_MAX_INTERVAL_SECS: %s is below NOETL_CONTAINER_POLL_INTERVAL_SECS, which is %s", o.MaxInterval, o.Interval)
	}
	k.TokenFile, k.CAFile = orAccount(k.TokenFile, "token"), orAccount(k.CAFile, "ca.crt")
	if host := os.Getenv("KUBERNETES_SERVICE_HOST"); k.API == "" && host != "" && k.TokenFile != "" {
		port := os.Getenv("KUBERNETES_SERVICE_PORT")
		if port == "" {
			port = "443"
		}
		k.API = "https://" + net.JoinHostPort(host, port)
	}
	o.Docker.Host = os.Getenv("DOCKER_HOST")
	if os.Getenv("DOCKER_TLS_VERIFY") != "" {
		o.Docker.CertPath = os.Getenv("DOCKER_CERT_PATH")
	}
	return o, nil
}

// orAccount is a file of the pod's account where none is named and there is one.
func orAccount(file, name string) string {
	if file != "" {
		return file
	}
	if _, err := os.Stat(accountDir + name); err != nil {
		return ""
	}
	return accountDir + name
}
