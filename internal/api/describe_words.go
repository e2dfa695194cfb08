package api

import (
	"reflect"

	"github.com/noetl/noetl-go/internal/api/openapi"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/secret"
)

var apiInfo = openapi.Info{
	Title:   "NoETL",
	Summary: "Register playbooks, run them, and watch what they do.",
	Description: "Ids are 64-bit integers; requests may write them as numbers or as decimal text. Times are RFC 3339 in UTC. " +
		"Requests may hold members that are not described here; they are ignored. Answers hold no others, and later versions may add some. " +
		"Every GET can be asked as HEAD. Every answer names its request in the header X-Request-ID. While authentication is off nobody has to say who they are, except on routes for the role internal.",
}

// The groups of routes.
const (
	tagCatalog    = "Catalog"
	tagStart      = "Start"
	tagExecutions = "Executions"
	tagSignals    = "Signals"
	tagResults    = "Results"
	tagVariables  = "Variables"
	tagWork       = "Workers"
	tagSecrets    = "Credentials"
	tagSystem     = "System"
	tagDatabase   = "Database"
	tagInternal   = "Internal"
	tagDocs       = "Documentation"
)

var apiTags = []openapi.Tag{
	{Name: tagCatalog, Description: "Playbooks and other resources, each in versions that never change."},
	{Name: tagStart, Description: "Starting executions, once or many at a time, and running them again."},
	{Name: tagExecutions, Description: "What executions did and do: rows, logs, streams, output, reasons; and ending them."},
	{Name: tagSignals, Description: "What executions wait for that comes from outside, and sending it."},
	{Name: tagResults, Description: "Values that are too large for the log and were put aside."},
	{Name: tagVariables, Description: "Values kept beside an execution."},
	{Name: tagWork, Description: "What workers do: they make themselves known, claim commands, keep their leases, and report events."},
	{Name: tagSchedules, Description: "What is started by itself: by cron or at intervals, each tick once."},
	{Name: tagSecrets, Description: "Credentials, and what was resolved from them. Secrets are shown to nobody but the worker that needs them."},
	{Name: tagSystem, Description: "Health, numbers and the state of the server."},
	{Name: tagDatabase, Description: "The schema, and holding what is stored against the log."},
	{Name: tagInternal, Description: "What system playbooks, publishers and watchers call with the internal token."},
	accessTag,
	{Name: tagDocs, Description: "This description."},
}

var securitySchemes = map[string]openapi.SecurityScheme{
	"bearer":   {Type: "http", Scheme: "bearer", Description: "An API token (noetl_pat_…), or a JWT of an issuer the server trusts."},
	"session":  {Type: "apiKey", In: "cookie", Name: "noetl_session", Description: "The session of a browser that has signed in."},
	"mtls":     {Type: "mutualTLS", Description: "A client certificate that the server maps to a caller."},
	"internal": {Type: "http", Scheme: "bearer", Description: "The internal token, NOETL_INTERNAL_API_TOKEN of the server. Without one in its settings these routes are closed."},
}

// securityOf is how a caller of a role may say who it is.
func securityOf(role Role) []map[string][]string {
	scopes := []string{string(role)}
	known := []map[string][]string{{"bearer": scopes}, {"session": scopes}, {"mtls": scopes}}
	switch role {
	case Anyone, "":
		return []map[string][]string{}
	case Internal:
		return append([]map[string][]string{{"internal": scopes}}, known...)
	}
	return known
}

// idText is an id in a path or a query.
var idText = &openapi.Schema{Type: openapi.Types{"string"}, Pattern: "^[0-9]+$"}

// pathWords say what the parameters of paths are.
var pathWords = map[string]string{
	"id":           "The execution.",
	"execution_id": "The execution.",
	"event_id":     "The command, by the id of its command.issued event.",
	"catalog_id":   "The catalog entry.",
	"kind":         "The kind of resource, such as playbook.",
	"path":         "The path of the resource; it may hold slashes.",
	"step":         "The step that waits.",
	"name":         "The name.",
	"identifier":   "The credential, by name or id.",
	"file":         "The file.",
	"ref":          "The schedule, by name or id.",
}

// components knows the types that have their own form in JSON.
func (s *Server) components() *openapi.Components {
	number := &openapi.Schema{Type: openapi.Types{"integer"}, Format: "int64"}
	text := &openapi.Schema{Type: openapi.Types{"string"}, Pattern: "^-?[0-9]+$"}
	own := number
	if s.ids == stringIDs {
		own = text
	}
	idIn := &openapi.Schema{Type: openapi.Types{"integer", "string"}, Format: "int64", Pattern: "^[0-9]*$"}
	c := &openapi.Components{
		Words: openapi.Words{Meanings: allMeanings(), Values: memberValues},
		Names: map[reflect.Type]string{
			reflect.TypeFor[failure]():             "Error",
			reflect.TypeFor[secret.Registration](): "Credential",
			reflect.TypeFor[credentialView]():      "CredentialInfo",
			reflect.TypeFor[event.Registered]():    "Runtime",
			reflect.TypeFor[entryView]():           "CatalogEntry",
			reflect.TypeFor[executionView]():       "Execution",
			reflect.TypeFor[detailView]():          "ExecutionHead",
			reflect.TypeFor[detailAnswer]():        "ExecutionDetail",
			reflect.TypeFor[variableView]():        "Variable",
			reflect.TypeFor[eventView]():           "Event",
			reflect.TypeFor[replay.Execution]():    "ReplayedExecution",
			reflect.TypeFor[replay.Command]():      "ReplayedCommand",
			reflect.TypeFor[event.Explanation]():   "StepExplanation",
		},
		Received: map[reflect.Type]*openapi.Schema{reflect.TypeFor[event.ID](): idIn, reflect.TypeFor[event.StringID](): idIn},
		Members:  map[string]*openapi.Schema{"execution_id_str": text, "catalog_id_str": text, "parent_execution_id_str": text},
		Special: map[reflect.Type]*openapi.Schema{
			reflect.TypeFor[wireID]():         own,
			reflect.TypeFor[event.StringID](): text,
			reflect.TypeFor[event.ID]():       number,
			reflect.TypeFor[version]():        {Type: openapi.Types{"integer", "string"}, Description: "A number, or \"latest\", which is meant when nothing is said."},
			reflect.TypeFor[startItem](): {AnyOf: []*openapi.Schema{
				{Ref: "#/components/schemas/ExecuteBody"}, {Description: "Anything else is answered with an error of its own."},
			}},
			reflect.TypeFor[object]():        openapi.Of("object"),
			reflect.TypeFor[note]():          {Description: "An object; of anything else one is made."},
			reflect.TypeFor[value]():         {},
			reflect.TypeFor[instant]():       {Type: openapi.Types{"string"}, Description: "RFC 3339; a blank for the T and a missing zone, which means UTC, are accepted."},
			reflect.TypeFor[count]():         {Type: openapi.Types{"integer", "boolean"}, Description: "How many; true is one."},
			reflect.TypeFor[heldCommand]():   {Type: openapi.Types{"integer", "string", "object"}, Description: "The id of a command, or {event_id, execution_id?, worker_id?, attempt?}."},
			reflect.TypeFor[variablesBody](): {Type: openapi.Types{"object"}, Description: "{variables: [{var_name, var_value, var_type?, source_step?}]}, {variables: {name: value}, var_type?, source_step?}, or {name: value}."},
		},
	}
	return c
}
