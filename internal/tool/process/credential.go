package process

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// known lists, for types of credentials that programs look for in their
// environment, the variable and the fields it is taken from.
var known = map[string][]variable{
	"postgres": {
		{"PGHOST", tool.PostgresNames["host"]},
		{"PGPORT", tool.PostgresNames["port"]},
		{"PGUSER", tool.PostgresNames["user"]},
		{"PGPASSWORD", tool.PostgresNames["password"]},
		{"PGDATABASE", tool.PostgresNames["database"]},
		{"PGSSLMODE", tool.PostgresNames["sslmode"]},
	},
	"aws": {
		{"AWS_ACCESS_KEY_ID", []string{"access_key_id", "aws_access_key_id", "access_key", "key_id"}},
		{"AWS_SECRET_ACCESS_KEY", []string{"secret_access_key", "aws_secret_access_key", "secret_key", "secret"}},
		{"AWS_SESSION_TOKEN", []string{"session_token", "aws_session_token"}},
		{"AWS_REGION", []string{"region", "aws_region"}},
		{"AWS_DEFAULT_REGION", []string{"region", "aws_region"}},
		{"AWS_ENDPOINT_URL", []string{"endpoint_url", "endpoint"}},
	},
	"azure": {
		{"AZURE_TENANT_ID", []string{"tenant_id"}}, {"AZURE_CLIENT_ID", []string{"client_id"}}, {"AZURE_CLIENT_SECRET", []string{"client_secret"}},
	},
	"nats": {
		{"NATS_URL", tool.NATSNames["url"]}, {"NATS_USER", tool.NATSNames["user"]}, {"NATS_PASSWORD", tool.NATSNames["password"]}, {"NATS_TOKEN", tool.NATSNames["token"]},
	},
	"snowflake": {
		{"SNOWFLAKE_ACCOUNT", tool.SnowflakeNames["account"]},
		{"SNOWFLAKE_USER", tool.SnowflakeNames["user"]},
		{"SNOWFLAKE_PASSWORD", tool.SnowflakeNames["password"]},
		{"SNOWFLAKE_WAREHOUSE", tool.SnowflakeNames["warehouse"]},
		{"SNOWFLAKE_DATABASE", tool.SnowflakeNames["database"]},
		{"SNOWFLAKE_SCHEMA", tool.SnowflakeNames["schema"]},
		{"SNOWFLAKE_ROLE", tool.SnowflakeNames["role"]},
	},
}

type variable struct {
	name   string
	fields []string
}

// family is the type under which programs look for a credential.
func family(c *tool.Credential) string {
	switch kind := strings.ToLower(c.Type); kind {
	case "postgresql", "pg":
		return "postgres"
	case "s3", "aws_credentials":
		return "aws"
	case "google", "gcp", "google_oauth", "google_service_account", "gcs_service_account", "service_account", "gcs":
		return "google"
	default:
		return kind
	}
}

// addCredentials puts every field of every credential into the environment as
// NOETL_AUTH_<NAME>_<FIELD>; where one credential of a type is given, also the
// variables that programs know.
func (p *Place) addCredentials(logins map[string]*tool.Credential) error {
	families := map[string][]*tool.Credential{}
	for _, name := range tool.SortedKeys(logins) {
		c := logins[name]
		if c == nil {
			continue
		}
		if name == "" {
			name = c.Alias
		}
		if err := p.addFields(name, c); err != nil {
			return err
		}
		families[family(c)] = append(families[family(c)], c)
	}
	for name, all := range families {
		if len(all) != 1 {
			continue
		}
		for _, v := range known[name] {
			if text := all[0].Text(v.fields...); text != "" {
				p.Env[v.name] = text
			}
		}
		if name == "google" && p.Dir != "" {
			if err := p.addGoogle(all[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Variables are the variables that credentials become, for a process on another
// machine: without those that name a file.
func Variables(logins map[string]*tool.Credential) (map[string]string, error) {
	p := &Place{Env: map[string]string{}}
	err := p.addCredentials(logins)
	return p.Env, err
}

func (p *Place) addFields(name string, c *tool.Credential) error {
	prefix := "NOETL_AUTH_"
	if name != "" {
		prefix += Variable(name) + "_"
	}
	if c.Type != "" {
		p.Env[prefix+"TYPE"] = c.Type
	}
	for _, field := range tool.SortedKeys(c.Data) {
		if c.Data[field] == nil {
			continue
		}
		text, err := tool.Text(c.Data[field])
		if err != nil {
			return err
		}
		p.Env[prefix+Variable(field)] = text
	}
	return nil
}

// addGoogle writes the key of an account into a file, which is where Google's
// programs want it.
func (p *Place) addGoogle(c *tool.Credential) error {
	key := any(c.Data)
	for _, field := range []string{"service_account_json", "service_account", "credentials_json", "key_json", "json"} {
		if v := c.Data[field]; v != nil {
			key = v
			break
		}
	}
	if whole, isMap := key.(map[string]any); isMap && whole["private_key"] == nil && whole["refresh_token"] == nil && whole["client_secret"] == nil && whole["source_credentials"] == nil {
		return nil // no account in it: a token, perhaps
	}
	text, err := tool.Text(key)
	if err != nil {
		return err
	}
	path := filepath.Join(p.Dir, ".google-credentials.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return noDirectory(err)
	}
	p.Env["GOOGLE_APPLICATION_CREDENTIALS"] = path
	if project := c.Text("project_id"); project != "" {
		p.Env["GOOGLE_CLOUD_PROJECT"] = project
	}
	return nil
}

// Variable is a name as part of a variable's: upper case, with _ for what
// variables cannot have.
func Variable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, name)
}
