package cli

import (
	"os"
	"strings"

	"github.com/noetl/noetl-go/internal/node"
)

// secretFlags say how a server keeps credentials. The keys themselves are no
// flags: others on the machine can read a command line.
type secretFlags struct {
	EncryptionKeyFile       string `help:"File with the key that credentials are encrypted with: base64 of 32 bytes, or lines of VERSION:KEY with the current one first." env:"NOETL_ENCRYPTION_KEY_FILE" placeholder:"FILE"`
	AllowInsecureDefaultKey bool   `help:"Start on PostgreSQL without an encryption key, with one that is lost at the end." env:"NOETL_ALLOW_INSECURE_DEFAULT_KEY"`
	SecretAuditRequired     bool   `help:"Refuse to hand out a secret unless that could be written down first." env:"NOETL_SECRET_AUDIT_REQUIRED"`
	ServerRegion            string `help:"Region of this server, for the secret audit." env:"NOETL_SERVER_REGION" placeholder:"NAME"`
}

// secretSettings must not be blank.
var secretSettings = []string{
	"NOETL_ENCRYPTION_KEY", "NOETL_ENCRYPTION_KEYS", "NOETL_ENCRYPTION_KEY_FILE", "NOETL_ALLOW_INSECURE_DEFAULT_KEY", "NOETL_SECRET_AUDIT_REQUIRED",
	"NOETL_SERVER_REGION",
}

func (f *secretFlags) options() (node.Secrets, error) {
	if err := refuseBlank(secretSettings...); err != nil {
		return node.Secrets{}, err
	}
	return node.Secrets{
		Keys:              node.EncryptionKeys{Keys: os.Getenv("NOETL_ENCRYPTION_KEYS"), Key: os.Getenv("NOETL_ENCRYPTION_KEY"), File: f.EncryptionKeyFile},
		AllowEphemeralKey: f.AllowInsecureDefaultKey, AuditRequired: f.SecretAuditRequired, Region: f.ServerRegion,
	}, nil
}

// envSecrets are the secrets in this process's environment that tools may use.
func envSecrets() (map[string]string, error) {
	return node.EnvSecrets(strings.Split(os.Getenv("NOETL_KEYCHAIN_ENV_VARS"), ","), os.LookupEnv)
}
