package api

import (
	"net/http"

	"github.com/noetl/noetl-go/internal/api/openapi"
	"github.com/noetl/noetl-go/internal/auth"
)

const tagAccess = "Access"

// loginView and allowanceView are what the answers of older clients' routes hold.
type (
	loginView struct {
		Status string `json:"status"`
		Data   struct {
			Status  string    `json:"status,omitempty"`
			Token   string    `json:"session_token,omitempty"`
			User    *userView `json:"user,omitempty"`
			Expires string    `json:"expires_at,omitempty"`
			Error   string    `json:"error,omitempty"`
			Message string    `json:"message,omitempty"`
		} `json:"data"`
	}
	allowanceView struct {
		Status string    `json:"status"`
		Data   allowance `json:"data"`
	}
)

var noToken = map[int]string{http.StatusNotFound: "There is no such token, or it is not the caller's to see."}

var accessDescriptions = map[string]description{
	"POST /api/tokens": {
		id: "createToken", tag: tagAccess, text: "The secret is in this answer and nowhere else. Nobody gives more rights than they have.",
		body: takes[tokenBody]("name"), gives: []content{givesAs[newToken](http.StatusCreated, "The token, shown this once.")},
	},
	"GET /api/tokens":         {id: "listTokens", tag: tagAccess, gives: gives[tokensAnswer]()},
	"DELETE /api/tokens/{id}": {id: "revokeToken", tag: tagAccess, text: "It is refused everywhere within seconds.", gives: gives[auth.Token](), fails: noToken},
	"GET /api/audit": {
		id: "listActions", tag: tagAccess, text: "What changes an execution stands in that execution's log, as meta.actor.", gives: gives[actionsAnswer](),
		params: []parameter{
			textParam("actor", "Only of this one."), textParam("type", "Only of this type, such as token.created or access.denied."), textParam("target", "Only about this."),
			timeParam("from", "Then or later."), timeParam("to", "Before then."), idParam("before", "Only older ones: the value of next."), numberParam("limit", "How many, at most 1000.", auditRows, 1),
		},
	},
	"GET /api/auth/methods": {id: "listMethods", tag: tagAccess, gives: gives[methodsAnswer]()},
	"GET /api/auth/me":      {id: "getMe", tag: tagAccess, gives: gives[auth.Principal]()},
	"POST /api/auth/login": {
		id: "login", tag: tagAccess, text: "Takes an API token, or a JWT of an issuer the server trusts. With cookie the session is kept in a cookie and not shown.",
		body: takes[loginBody](), gives: gives[loginView](),
	},
	"POST /api/auth/logout":                {id: "logout", tag: tagAccess, body: mayTake[logoutBody](), gives: gives[liveAnswer]()},
	"POST /api/auth/session/validate":      {id: "validateSession", tag: tagAccess, body: takes[sessionBody](), gives: gives[sessionAnswer]()},
	"POST /api/auth/check-playbook-access": {id: "checkAccess", tag: tagAccess, body: takes[accessBody](), gives: gives[allowanceView]()},
	"GET /api/auth/oidc/start": {
		id: "beginLogin", tag: tagAccess, params: []parameter{textParam("return_to", "The page of ours to come back to.")},
		gives: []content{{status: http.StatusFound, text: "To the issuer."}}, fails: map[int]string{http.StatusNotFound: "People cannot sign in here with a browser."},
	},
	"GET /api/auth/oidc/callback": {
		id: "finishLogin", tag: tagAccess, params: []parameter{textParam("state", "As the issuer was given it."), textParam("code", "As the issuer gives it.")},
		gives: []content{{status: http.StatusSeeOther, text: "To the page that was asked for, signed in or not."}},
		fails: map[int]string{http.StatusNotFound: "People cannot sign in here with a browser."},
	},
	"POST /api/postgres/execute": {
		id: "runSQL", tag: tagDatabase, text: "One statement in a transaction of its own, read only unless a setting says otherwise. Complaints of the database are in the body.",
		body: takes[consoleBody]("credential"), gives: gives[consoleAnswer](), fails: map[int]string{http.StatusForbidden: "SQL from outside is closed here."},
	},
}

var accessTag = openapi.Tag{Name: tagAccess, Description: "Tokens, sessions, who the caller is, and what operators did."}
