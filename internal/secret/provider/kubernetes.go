package provider

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
)

// accountDir is where a pod finds its service account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount/"

// kubernetes reads [namespace/]secret/key with the service account of the pod.
// The key may be left out when the secret has only one.
type kubernetes struct {
	set    *Set
	once   sync.Once
	client *http.Client
	err    error
}

func newKubernetes(s *Set) *kubernetes { return &kubernetes{set: s} }

func (k *kubernetes) open() (*http.Client, error) {
	k.once.Do(func() {
		k.client = k.set.own
		file := k.set.first("NOETL_K8S_CA_FILE")
		if file == "" {
			if _, err := os.Stat(accountDir + "ca.crt"); err == nil {
				file = accountDir + "ca.crt"
			}
		}
		if file != "" {
			k.client, k.err = trusting(file)
		}
	})
	return k.client, k.err
}

func (k *kubernetes) close() {
	if k.client != nil {
		k.client.CloseIdleConnections()
	}
}

func (k *kubernetes) Fetch(ctx context.Context, ref string, o Options) (Value, error) {
	parts := strings.Split(ref, "/")
	var namespace, name, key string
	switch len(parts) {
	case 1:
		name = parts[0]
	case 2:
		name, key = parts[0], parts[1]
	case 3:
		namespace, name, key = parts[0], parts[1], parts[2]
	}
	if name == "" || len(parts) > 1 && key == "" || len(parts) > 2 && namespace == "" {
		return Value{}, badRef("k8s", ref, "want [namespace/]secret/key")
	}
	client, err := k.open()
	if err != nil {
		return Value{}, err
	}
	if namespace, err = k.namespace(namespace, o); err != nil {
		return Value{}, err
	}
	req, err := k.request("/api/v1/namespaces/"+url.PathEscape(namespace)+"/secrets/"+url.PathEscape(name), o)
	if err != nil {
		return Value{}, err
	}
	var answer struct {
		Data map[string]string `json:"data"`
	}
	if err := (call{provider: "k8s", what: "secret " + quote(namespace+"/"+name), client: client, request: req}).do(ctx, &answer); err != nil {
		return Value{}, err
	}
	fields := make(map[string]any, len(answer.Data))
	for name, text := range answer.Data {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return Value{}, badRef("k8s", ref, "field "+quote(name)+" is not base64")
		}
		fields[name] = string(raw)
	}
	return pick("k8s", ref, key, fields)
}

func (k *kubernetes) namespace(asked string, o Options) (string, error) {
	if name := firstText(asked, o.text("namespace"), k.set.first("NOETL_K8S_NAMESPACE")); name != "" {
		return name, nil
	}
	return readFile("k8s", accountDir+"namespace")
}

func (k *kubernetes) request(path string, o Options) (*http.Request, error) {
	base := firstText(o.text("server", "api_url"), k.set.first("NOETL_K8S_API_URL"))
	if host := k.set.first("KUBERNETES_SERVICE_HOST"); base == "" && host != "" {
		base = "https://" + net.JoinHostPort(host, firstText(k.set.first("KUBERNETES_SERVICE_PORT"), "443"))
	}
	if base == "" {
		base = "https://kubernetes.default.svc"
	}
	tok := o.text("token")
	if tok == "" {
		var err error
		if tok, err = readFile("k8s", firstText(k.set.first("NOETL_K8S_TOKEN_FILE"), accountDir+"token")); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequest(http.MethodGet, strings.TrimRight(base, "/")+path, nil)
	if err != nil {
		return nil, missing("k8s", "an address that is no URL", "check NOETL_K8S_API_URL on the server")
	}
	req.Header.Set("Authorization", "Bearer "+tok)
	return req, nil
}
