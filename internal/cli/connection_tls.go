package cli

import (
	"crypto/tls"
	"crypto/x509"
	"os"
)

// clientTLS is how a client checks a server and shows itself; nil for what the
// system does by itself. Half of a key pair is an error.
func clientTLS(ca, cert, key string) (*tls.Config, error) {
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, invalidf("read the certificate authority (NOETL_TLS_CA, tls_ca of the context): %v", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, invalidf("%s holds no certificate in PEM (NOETL_TLS_CA, tls_ca of the context)", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, invalidf("a client certificate needs its key and a key its certificate: give both (NOETL_TLS_CLIENT_CERT and NOETL_TLS_CLIENT_KEY, or tls_cert and tls_key of the context)")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, invalidf("read the client certificate: %v", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
