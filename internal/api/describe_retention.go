package api

import "github.com/noetl/noetl-go/internal/control"

type retentionBody struct {
	DryRun bool `json:"dry_run"`
	Limit  int  `json:"limit"`
}

var retentionDescriptions = map[string]description{
	"GET /api/retention":      {id: "getRetention", tag: tagDatabase, text: "It looks at all executions that have ended, and may take long.", gives: gives[control.RetentionState]()},
	"POST /api/retention/run": {id: "runRetention", tag: tagDatabase, text: "The rules in force decide. With dry_run it only tells.", body: mayTake[retentionBody](), gives: gives[control.RetentionReport]()},
}
