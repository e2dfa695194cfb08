package secret

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// kind is what is known of a type of credential: for each thing it must have,
// the fields that may hold it, and other names of the type.
type kind struct {
	names []string
	needs [][]string
}

// kinds are the types that tools know. Others are kept as they are: a template
// may read any of their fields.
var kinds = []kind{
	{names: []string{"postgres", "postgresql"}, needs: [][]string{{"host", "db_host", "connection", "connection_string", "dsn", "url"}}},
	{names: []string{"bearer", "bearer_token"}, needs: [][]string{{"token", "access_token", "bearer_token"}}},
	{names: []string{"api_key"}, needs: [][]string{{"api_key", "key", "token", "value"}}},
	{names: []string{"basic"}, needs: [][]string{{"username", "user", "db_user"}, {"password", "db_password"}}},
	{names: []string{"nats"}, needs: [][]string{{"url", "nats_url", "servers"}}},
	{names: []string{"snowflake"}, needs: [][]string{{"account", "sf_account"}, {"user", "sf_user", "username"}}},
	{names: []string{"gcs_hmac"}, needs: [][]string{{"key_id", "access_key_id", "access_key"}, {"secret", "secret_key", "secret_access_key"}}},
	{names: []string{"aws"}},
	{names: []string{"azure"}},
	{names: []string{"kafka"}},
	{names: []string{"pubsub"}},
	{names: []string{"oauth2", "oauth2_client_credentials"}},
	{names: []string{"google_oauth", "google_service_account", "service_account", "gcs", "gcs_service_account"}},
	{names: []string{"auth0"}},
	{names: []string{"ssh"}},
	{names: []string{"secret", "header"}},
}

// Kinds are the types of credentials that tools know, in order.
func Kinds() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.names...)
	}
	slices.Sort(out)
	return out
}

// checkKind tells early what the tool would complain of at the first use.
func checkKind(name string, data map[string]json.RawMessage) error {
	for _, k := range kinds {
		if !slices.Contains(k.names, name) {
			continue
		}
		for _, group := range k.needs {
			if !slices.ContainsFunc(group, func(field string) bool { return filled(data[field]) }) {
				return event.Errorf(event.Invalid, "data: a credential of type %s needs %s", name, strings.Join(group, " or "))
			}
		}
	}
	return nil
}

func filled(v json.RawMessage) bool {
	text := string(v)
	return text != "" && text != "null" && text != `""`
}

// fieldsOf are the names of the fields of an opened credential that is fit for
// its type.
func fieldsOf(kind string, plain []byte) ([]string, error) {
	var data map[string]json.RawMessage
	if err := json.Unmarshal(plain, &data); err != nil || data == nil {
		return nil, &event.Error{Code: event.Invalid, Message: "the credential is no object", Remedy: "register it again"}
	}
	return slices.Sorted(maps.Keys(data)), checkKind(kind, data)
}
