package provider

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

var awsRegion = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]+$`)

// cutRegion splits [region:]rest; the region may also stand in an ARN.
func (s *Set) cutRegion(ref string, o Options) (region, rest string) {
	if head, tail, ok := strings.Cut(ref, ":"); ok && awsRegion.MatchString(head) {
		return head, tail
	}
	if parts := strings.SplitN(ref, ":", 5); len(parts) == 5 && parts[0] == "arn" && parts[3] != "" {
		return parts[3], ref
	}
	return firstText(o.Region, o.text("region", "aws_region"), s.first("AWS_REGION", "AWS_DEFAULT_REGION")), ref
}

func awsHost(service, region string) string {
	suffix := ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		suffix += ".cn"
	}
	return "https://" + service + "." + region + suffix
}

// awsSecrets reads [region:]secret-id[#json-key] from AWS Secrets Manager. An
// id may be an ARN.
type awsSecrets struct{ set *Set }

func (p *awsSecrets) Fetch(ctx context.Context, ref string, o Options) (Value, error) {
	path, key := cutKey(ref)
	region, id := p.set.cutRegion(path, o)
	switch {
	case id == "":
		return Value{}, badRef("aws", ref, "want [region:]secret-id[#json-key]")
	case region == "":
		return Value{}, missing("aws", "no region", "write it before the secret, as in eu-west-1:name, or set AWS_REGION on the server")
	}
	keys, err := p.set.awsKeys(ctx, region, o)
	if err != nil {
		return Value{}, err
	}
	body, _ := json.Marshal(map[string]string{"SecretId": id}) // text always has a JSON form
	req, err := http.NewRequest(http.MethodPost, firstText(p.set.first("NOETL_AWS_SM_ENDPOINT"), awsHost("secretsmanager", region))+"/", bytes.NewReader(body))
	if err != nil {
		return Value{}, missing("aws", "an endpoint that is no URL", "check NOETL_AWS_SM_ENDPOINT on the server")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	sign(req, body, keys, region, "secretsmanager", p.set.s.Clock())
	var answer struct {
		SecretString *string
		SecretBinary string
	}
	c := call{provider: "aws", what: "secret " + quote(id), client: p.set.own, request: req, explain: awsRefused}
	if err := c.do(ctx, &answer); err != nil {
		return Value{}, err
	}
	if answer.SecretString != nil {
		return field("aws", ref, key, *answer.SecretString)
	}
	raw, err := base64.StdEncoding.DecodeString(answer.SecretBinary)
	if err != nil || len(raw) == 0 {
		return Value{}, noSecret("aws", ref, "it has no value")
	}
	return field("aws", ref, key, string(raw))
}

// awsRefused reads the type of an error, which says more than the status.
func awsRefused(_ int, body []byte) event.Code {
	var answer struct {
		Type string `json:"__type"`
	}
	_ = json.Unmarshal(body, &answer) // without a type the status decides
	_, kind, ok := strings.Cut(answer.Type, "#")
	if !ok {
		kind = answer.Type
	}
	switch kind {
	case "ResourceNotFoundException":
		return event.NotFound
	case "AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException", "InvalidSignatureException", "MissingAuthenticationTokenException":
		return event.Forbidden
	case "ThrottlingException", "TooManyRequestsException", "InternalServiceError", "InternalFailure", "ServiceUnavailable":
		return event.Unavailable
	}
	return ""
}

// awsKeys are those of the login, of the environment, or of the role that the
// machine's identity may take.
func (s *Set) awsKeys(ctx context.Context, region string, o Options) (awsKeys, error) {
	k := awsKeys{s.first("AWS_ACCESS_KEY_ID"), s.first("AWS_SECRET_ACCESS_KEY"), s.first("AWS_SESSION_TOKEN")}
	if len(o.Login) > 0 {
		k = awsKeys{
			o.text("access_key_id", "aws_access_key_id"), o.text("secret_access_key", "aws_secret_access_key"),
			o.text("session_token", "aws_session_token"),
		}
		if k.id == "" || k.secret == "" {
			return k, missing("aws", "a login without access_key_id and secret_access_key", "give the credential both")
		}
		return k, nil
	}
	if k.id != "" && k.secret != "" {
		return k, nil
	}
	role := s.first("AWS_ROLE_ARN")
	if role == "" || s.first("AWS_WEB_IDENTITY_TOKEN_FILE") == "" {
		return k, missing("aws", "no keys", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, on the server")
	}
	tok, err := s.tokens.get("aws|"+region+"|"+role, func() (token, error) {
		k, ends, err := s.assume(ctx, region, role, firstText(s.first("AWS_ROLE_SESSION_NAME"), "noetl"))
		raw, _ := json.Marshal([]string{k.id, k.secret, k.session}) // text always has a JSON form
		return token{string(raw), ends}, err
	})
	if err != nil {
		return k, err
	}
	var parts []string
	if json.Unmarshal([]byte(tok.text), &parts) != nil || len(parts) != 3 {
		return k, event.Errorf(event.Internal, "the keys of role %s cannot be read", quote(role))
	}
	return awsKeys{parts[0], parts[1], parts[2]}, nil
}

// awsSTS takes the role of [region:]role-arn[#session] with the web identity of
// the machine and gives its keys, which end.
type awsSTS struct{ set *Set }

func (p *awsSTS) Fetch(ctx context.Context, ref string, o Options) (Value, error) {
	path, session := cutKey(ref)
	region, role := p.set.cutRegion(path, o)
	if region == "" {
		region = "us-east-1"
	}
	if !strings.HasPrefix(role, "arn:") {
		return Value{}, badRef("aws_sts", ref, "want [region:]role-arn[#session]")
	}
	k, ends, err := p.set.assume(ctx, region, role, firstText(session, "noetl"))
	if err != nil {
		return Value{}, err
	}
	raw, _ := json.Marshal(map[string]string{"access_key_id": k.id, "secret_access_key": k.secret, "session_token": k.session})
	return Value{Object: raw, ExpiresAt: ends}, nil
}

func (s *Set) assume(ctx context.Context, region, role, session string) (awsKeys, time.Time, error) {
	file := s.first("AWS_WEB_IDENTITY_TOKEN_FILE")
	if file == "" {
		return awsKeys{}, time.Time{}, missing("aws_sts", "no web identity", "set AWS_WEB_IDENTITY_TOKEN_FILE on the server")
	}
	jwt, err := readFile("aws_sts", file)
	if err != nil {
		return awsKeys{}, time.Time{}, err
	}
	duration, err := s.seconds("NOETL_AWS_STS_DURATION_SECS", 3600, 900, 43200)
	if err != nil {
		return awsKeys{}, time.Time{}, err
	}
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {role}, "RoleSessionName": {session},
		"WebIdentityToken": {jwt}, "DurationSeconds": {strconv.Itoa(duration)},
	}
	req, err := http.NewRequest(http.MethodPost, firstText(s.first("NOETL_AWS_STS_ENDPOINT"), awsHost("sts", region))+"/", strings.NewReader(form.Encode()))
	if err != nil {
		return awsKeys{}, time.Time{}, missing("aws_sts", "an endpoint that is no URL", "check NOETL_AWS_STS_ENDPOINT on the server")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	body, err := call{provider: "aws_sts", what: "role " + quote(role), client: s.own, time: slowTime, request: req, explain: stsRefused}.raw(ctx)
	if err != nil {
		return awsKeys{}, time.Time{}, err
	}
	var answer struct {
		ID      string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>AccessKeyId"`
		Secret  string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SecretAccessKey"`
		Session string    `xml:"AssumeRoleWithWebIdentityResult>Credentials>SessionToken"`
		Ends    time.Time `xml:"AssumeRoleWithWebIdentityResult>Credentials>Expiration"`
	}
	if xml.Unmarshal(body, &answer) != nil || answer.ID == "" {
		return awsKeys{}, time.Time{}, event.Errorf(event.Internal, "the answer of aws_sts for role %s is not as expected", quote(role))
	}
	return awsKeys{answer.ID, answer.Secret, answer.Session}, answer.Ends, nil
}

func stsRefused(_ int, body []byte) event.Code {
	var answer struct {
		Code string `xml:"Error>Code"`
	}
	_ = xml.Unmarshal(body, &answer) // without a code the status decides
	switch answer.Code {
	case "AccessDenied", "ExpiredTokenException", "InvalidIdentityToken", "IDPRejectedClaim":
		return event.Forbidden
	case "IDPCommunicationError", "Throttling", "ServiceUnavailable", "InternalFailure":
		return event.Unavailable
	}
	return ""
}

// seconds reads a setting that is a number of seconds within bounds.
func (s *Set) seconds(name string, def, least, most int) (int, error) {
	text := s.first(name)
	if text == "" {
		return def, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, event.Errorf(event.Invalid, "%s: want seconds from %d to %d, got %q", name, least, most, text)
	}
	return n, nil
}
