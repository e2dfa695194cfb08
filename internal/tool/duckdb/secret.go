package duckdb

import (
	"context"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// secretKind is how a type of credential becomes a secret of DuckDB.
type secretKind struct {
	word      string              // the TYPE of CREATE SECRET
	extension string              // that knows it
	options   []string            // in order
	names     map[string][]string // option to fields of the credential
	required  []string
}

var (
	objectKeys = map[string][]string{
		"KEY_ID": {"key_id", "access_key_id", "aws_access_key_id", "access_key", "hmac_key_id"},
		"SECRET": {"secret", "secret_key", "secret_access_key", "aws_secret_access_key", "hmac_secret"},
		"REGION": {"region", "aws_region"}, "SESSION_TOKEN": {"session_token", "aws_session_token"},
		"ENDPOINT": {"endpoint"}, "URL_STYLE": {"url_style"}, "USE_SSL": {"use_ssl"}, "SCOPE": {"scope"},
	}
	objectOptions = []string{"KEY_ID", "SECRET", "REGION", "SESSION_TOKEN", "ENDPOINT", "URL_STYLE", "USE_SSL", "SCOPE"}
	serverOptions = []string{"HOST", "PORT", "USER", "PASSWORD", "DATABASE"}
	serverKeys    = map[string][]string{
		"HOST": tool.PostgresNames["host"], "PORT": tool.PostgresNames["port"], "USER": tool.PostgresNames["user"],
		"PASSWORD": tool.PostgresNames["password"], "DATABASE": tool.PostgresNames["database"],
	}
)

var secretKinds = map[string]secretKind{
	"s3":       {"s3", "httpfs", objectOptions, objectKeys, []string{"KEY_ID", "SECRET"}},
	"gcs":      {"gcs", "httpfs", objectOptions, objectKeys, []string{"KEY_ID", "SECRET"}},
	"azure":    {"azure", "azure", []string{"CONNECTION_STRING", "ACCOUNT_NAME", "SCOPE"}, map[string][]string{"CONNECTION_STRING": {"connection_string"}, "ACCOUNT_NAME": {"account_name"}, "SCOPE": {"scope"}}, nil},
	"postgres": {"postgres", "postgres", serverOptions, serverKeys, []string{"HOST"}},
	"mysql":    {"mysql", "mysql", serverOptions, serverKeys, []string{"HOST"}},
	"http":     {"http", "httpfs", []string{"BEARER_TOKEN", "SCOPE"}, map[string][]string{"BEARER_TOKEN": {"token", "access_token", "bearer_token"}, "SCOPE": {"scope"}}, []string{"BEARER_TOKEN"}},
}

// Types of credentials by the name of the secret they make.
var secretTypes = map[string]string{
	"s3": "s3", "aws": "s3", "aws_s3": "s3", "minio": "s3",
	"gcs": "gcs", "gcs_hmac": "gcs", "hmac": "gcs",
	"azure": "azure", "azure_storage": "azure",
	"postgres": "postgres", "postgresql": "postgres", "mysql": "mysql",
	"bearer": "http", "bearer_token": "http", "http": "http",
}

// makeSecrets creates a secret for each credential, for as long as the call
// lasts. Messages of DuckDB may quote the statement and are not passed on.
func makeSecrets(ctx context.Context, conn *Conn, found map[string]*tool.Credential) error {
	for _, name := range tool.SortedKeys(found) {
		text, kind, err := createSecret(name, found[name])
		if err != nil {
			return err
		}
		if err := conn.Exec(ctx, text); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return secretFailure(name, kind, err)
		}
	}
	return nil
}

func createSecret(name string, c *tool.Credential) (string, secretKind, error) {
	kind, known := secretKinds[secretTypes[strings.ToLower(c.Type)]]
	if !known {
		return "", kind, tool.ConfigErrorf("auth %s: a credential of type %q cannot become a DuckDB secret; use one of %s, or set auto_secrets to false", shown(name), c.Type, strings.Join(tool.SortedKeys(secretTypes), ", "))
	}
	options := []string{"TYPE " + kind.word}
	have := map[string]bool{}
	for _, option := range kind.options {
		if value := c.Text(kind.names[option]...); value != "" {
			if option == "SCOPE" {
				value = strings.ReplaceAll(value, "gcs://", "gs://")
			}
			options = append(options, option+" "+literal(value))
			have[option] = true
		}
	}
	for _, option := range kind.required {
		if !have[option] {
			return "", kind, tool.ConfigErrorf("auth %s: the credential has none of %s", shown(name), strings.Join(kind.names[option], ", "))
		}
	}
	return fmt.Sprintf("CREATE OR REPLACE TEMPORARY SECRET %s (%s)", Quote(secretName(name)), strings.Join(options, ", ")), kind, nil
}

func secretFailure(name string, kind secretKind, err error) error {
	e := failure(err)
	if e.Code == "EXTENSION_MISSING" || strings.Contains(e.Message, "Secret type") || strings.Contains(e.Message, "secret type") || strings.Contains(e.Message, "extension") {
		return &tool.Error{
			Kind: tool.KindConfig, Code: "EXTENSION_MISSING",
			Message: fmt.Sprintf("auth %s needs DuckDB's extension %q, which is neither in this program nor to be had: it is downloaded when first used, or put into the directory noetldb/extensions of the data directory", shown(name), kind.extension),
		}
	}
	return &tool.Error{Kind: tool.KindConfig, Code: e.Code, Message: fmt.Sprintf("auth %s: DuckDB refused the secret of type %s", shown(name), kind.word)}
}

func secretName(name string) string {
	if name == "" {
		return "noetl"
	}
	return name
}

func shown(name string) string { return fmt.Sprintf("%q", secretName(name)) }
