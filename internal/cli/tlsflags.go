package cli

import (
	"crypto/tls"
	"os"

	"github.com/noetl/noetl-go/internal/node"
)

// tlsFlags are the files a server shows itself with and knows clients by.
type tlsFlags struct {
	TLSCert     string `name:"tls-cert" help:"Certificate of the server, in PEM; it is read again when it changes." env:"NOETL_TLS_CERT" placeholder:"FILE"`
	TLSKey      string `name:"tls-key" help:"Its key." env:"NOETL_TLS_KEY" placeholder:"FILE"`
	TLSClientCA string `name:"tls-client-ca" help:"Who issues certificates that clients may show." env:"NOETL_TLS_CLIENT_CA" placeholder:"FILE"`
}

func (f *tlsFlags) options() node.TLS {
	return node.TLS{Cert: f.TLSCert, Key: f.TLSKey, ClientCA: f.TLSClientCA}
}

// workerTLS is how a worker checks its server and shows itself.
func workerTLS() (*tls.Config, error) {
	if err := refuseBlank("NOETL_TLS_CA", "NOETL_TLS_CLIENT_CERT", "NOETL_TLS_CLIENT_KEY"); err != nil {
		return nil, err
	}
	return clientTLS(os.Getenv("NOETL_TLS_CA"), os.Getenv("NOETL_TLS_CLIENT_CERT"), os.Getenv("NOETL_TLS_CLIENT_KEY"))
}

// workerToken is what a worker presents: its own token, given or of the
// environment, or the internal one of older deployments.
func workerToken(given string) (string, error) {
	if err := refuseBlank("NOETL_TOKEN"); err != nil {
		return "", err
	}
	token, err := readSecret(orEnvWhenBlank(given, "NOETL_TOKEN"))
	if err != nil || token != "" {
		return token, err
	}
	return internalToken(), nil
}
