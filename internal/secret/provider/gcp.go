package provider

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// gcpSecrets reads projects/p/secrets/s[/versions/v], or a bare name in the
// server's project, from Google's Secret Manager.
type gcpSecrets struct{ set *Set }

func (p *gcpSecrets) Fetch(ctx context.Context, ref string, o Options) (Value, error) {
	path, key := cutKey(ref)
	name := strings.Trim(path, "/")
	if name != "" && !strings.Contains(name, "/") {
		project := firstText(p.set.first("GOOGLE_CLOUD_PROJECT"), o.text("project_id"))
		if project == "" {
			return Value{}, missing("gcp", "no project", "write projects/<project>/secrets/<name>, or set GOOGLE_CLOUD_PROJECT on the server")
		}
		name = "projects/" + project + "/secrets/" + name
	}
	parts := strings.Split(name, "/")
	if len(parts) == 4 {
		parts = append(parts, "versions", "latest")
	}
	if len(parts) != 6 || parts[0] != "projects" || parts[2] != "secrets" || parts[4] != "versions" {
		return Value{}, badRef("gcp", ref, "want projects/<project>/secrets/<name>[/versions/<version>]")
	}
	tok, err := p.set.googleToken(ctx, o)
	if err != nil {
		return Value{}, err
	}
	base := firstText(p.set.first("NOETL_GCP_SM_ENDPOINT"), "https://secretmanager.googleapis.com")
	req, err := http.NewRequest(http.MethodGet, strings.TrimRight(base, "/")+"/v1/"+escapePath(strings.Join(parts, "/"))+":access", nil)
	if err != nil {
		return Value{}, missing("gcp", "an endpoint that is no URL", "check NOETL_GCP_SM_ENDPOINT on the server")
	}
	req.Header.Set("Authorization", "Bearer "+tok)
	var answer struct {
		Payload struct {
			Data string `json:"data"`
		} `json:"payload"`
	}
	if err := (call{provider: "gcp", what: "secret " + quote(strings.Join(parts, "/")), client: p.set.own, request: req}).do(ctx, &answer); err != nil {
		return Value{}, err
	}
	raw, err := base64.StdEncoding.DecodeString(answer.Payload.Data)
	if err != nil {
		return Value{}, event.Errorf(event.Internal, "the answer of gcp for secret %s is not base64", quote(ref))
	}
	return field("gcp", ref, key, string(raw))
}

// gcpIAM mints an access token of the service account <email>[#<scope>], which
// the server must be allowed to act as.
type gcpIAM struct{ set *Set }

func (p *gcpIAM) Fetch(ctx context.Context, ref string, o Options) (Value, error) {
	email, scope := cutKey(ref)
	email = firstText(email, p.set.first("NOETL_GCP_IMPERSONATE_SA"))
	if email == "" || strings.ContainsAny(email, "/?") {
		return Value{}, badRef("gcp_iam", ref, "want <service-account-email>[#<scope>]")
	}
	lifetime, err := p.set.seconds("NOETL_GCP_IAM_LIFETIME_SECS", 3600, 60, 43200)
	if err != nil {
		return Value{}, err
	}
	tok, err := p.set.googleToken(ctx, o)
	if err != nil {
		return Value{}, err
	}
	body, _ := json.Marshal(map[string]any{ // text always has a JSON form
		"scope": []string{firstText(scope, cloudPlatform)}, "lifetime": strconv.Itoa(lifetime) + "s",
	})
	base := firstText(p.set.first("NOETL_GCP_IAM_ENDPOINT"), "https://iamcredentials.googleapis.com")
	req, err := http.NewRequest(http.MethodPost, strings.TrimRight(base, "/")+"/v1/projects/-/serviceAccounts/"+url.PathEscape(email)+":generateAccessToken", bytes.NewReader(body))
	if err != nil {
		return Value{}, missing("gcp_iam", "an endpoint that is no URL", "check NOETL_GCP_IAM_ENDPOINT on the server")
	}
	req.Header.Set("Authorization", "Bearer "+tok)
	req.Header.Set("Content-Type", "application/json")
	var answer struct {
		Token string    `json:"accessToken"`
		Ends  time.Time `json:"expireTime"`
	}
	if err := (call{provider: "gcp_iam", what: "a token of " + quote(email), client: p.set.own, request: req}).do(ctx, &answer); err != nil {
		return Value{}, err
	}
	return Value{Text: answer.Token, ExpiresAt: answer.Ends}, nil
}
