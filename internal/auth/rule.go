package auth

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	josejson "github.com/go-jose/go-jose/v4/json"

	"github.com/noetl/noetl-go/internal/event"
)

// Rule gives grants to callers of whom a statement is true.
type Rule struct {
	Name   string // of a claim, or CN, DNS, URI of a certificate
	Value  string // what it must be; "*" anything
	Grants []Grant
}

// ParseRules reads rules as settings hold them: NAME=VALUE->GRANTS, separated by
// semicolons, such as "groups=data->operator:team/a; sub=*->viewer".
func ParseRules(text string) ([]Rule, error) {
	var out []Rule
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		r, err := parseRule(part)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	if len(out) == 0 {
		return nil, &event.Error{Code: event.Invalid, Message: "there is no rule in it", Remedy: ruleRemedy}
	}
	return out, nil
}

const ruleRemedy = "write NAME=VALUE->GRANTS, several separated by semicolons, such as groups=data->operator:team/a"

func parseRule(text string) (Rule, error) {
	wrong := func(why string) error {
		return &event.Error{Code: event.Invalid, Message: fmt.Sprintf("rule %q %s", text, why), Remedy: ruleRemedy}
	}
	condition, grants, ok := strings.Cut(strings.ReplaceAll(text, "→", "->"), "->")
	if !ok {
		return Rule{}, wrong("has no -> between the condition and the grants")
	}
	// Names of claims may be URLs; the last = before the arrow ends the name.
	at := strings.LastIndex(condition, "=")
	if at < 0 {
		return Rule{}, wrong("has no = between name and value")
	}
	r := Rule{Name: strings.TrimSpace(condition[:at]), Value: strings.TrimSpace(condition[at+1:])}
	if r.Name == "" || r.Value == "" {
		return Rule{}, wrong("has a blank name or value")
	}
	var err error
	if r.Grants, err = ParseGrants(grants); err != nil {
		return Rule{}, wrong("gives nothing: " + err.Error())
	}
	return r, nil
}

// granted are the grants of all rules whose condition holds, each once.
func granted(rules []Rule, holds func(*Rule) bool) []Grant {
	out := []Grant{}
	for i := range rules {
		if !holds(&rules[i]) {
			continue
		}
		for _, g := range rules[i].Grants {
			if !slices.Contains(out, g) {
				out = append(out, g)
			}
		}
	}
	return out
}

// claims are what a bearer token says of its subject.
type claims map[string]any

// grants maps claims. Who maps by e-mail trusts the issuer to have verified it.
func (c claims) grants(rules []Rule) []Grant {
	return granted(rules, func(r *Rule) bool {
		byMail := r.Name == "email"
		if byMail && !c.mailVerified() {
			return false
		}
		return slices.ContainsFunc(c.values(r.Name), func(v string) bool {
			switch {
			case r.Value == "*":
				return v != ""
			case byMail && strings.HasPrefix(r.Value, "*@"):
				return sameDomain(v, r.Value[2:])
			case byMail:
				return strings.EqualFold(v, r.Value)
			}
			return v == r.Value
		})
	})
}

// sameDomain compares the part behind the last @, which is the one that counts.
func sameDomain(mail, domain string) bool {
	at := strings.LastIndexByte(mail, '@')
	return at > 0 && strings.EqualFold(mail[at+1:], domain)
}

func (c claims) mailVerified() bool {
	v := c["email_verified"]
	return v == true || v == "true"
}

// values are the texts of a claim: its own, those of its list, or the words of
// a scope. A name with dots is looked for as it is and then step by step.
func (c claims) values(name string) []string {
	v, ok := c[name]
	if !ok {
		v = map[string]any(c)
		for part := range strings.SplitSeq(name, ".") {
			inner, _ := v.(map[string]any)
			v = inner[part]
		}
	}
	if text, ok := v.(string); ok && (name == "scope" || name == "scp") {
		return strings.Fields(text)
	}
	if list, ok := v.([]any); ok {
		var out []string
		for _, item := range list {
			out = append(out, scalar(item)...)
		}
		return out
	}
	return scalar(v)
}

func scalar(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case bool:
		return []string{fmt.Sprint(v)}
	case josejson.Number:
		return []string{v.String()}
	}
	return nil
}

// text is a claim that is a text, or "".
func (c claims) text(name string) string {
	v, _ := c[name].(string)
	return v
}

// name is what people know the subject by.
func (c claims) name() string {
	if mail := c.text("email"); mail != "" && c.mailVerified() {
		return mail
	}
	for _, name := range []string{"preferred_username", "name", "client_id", "sub"} {
		if v := c.text(name); v != "" {
			return v
		}
	}
	return ""
}

// CheckCertificateRules refuses rules about what no certificate says.
func CheckCertificateRules(rules []Rule) error {
	for _, r := range rules {
		if !slices.Contains([]string{"CN", "DNS", "URI"}, r.Name) {
			return &event.Error{
				Code: event.Invalid, Message: fmt.Sprintf("a certificate has no %q that rights can depend on", r.Name),
				Remedy: "write CN=NAME, DNS=NAME, DNS=*.DOMAIN, URI=ADDRESS or URI=ADDRESS/*",
			}
		}
	}
	return nil
}

// certificateGrants maps what a verified certificate says.
func certificateGrants(cert *x509.Certificate, rules []Rule) []Grant {
	return granted(rules, func(r *Rule) bool {
		switch r.Name {
		case "CN":
			return cert.Subject.CommonName != "" && (r.Value == "*" || r.Value == cert.Subject.CommonName)
		case "DNS":
			return slices.ContainsFunc(cert.DNSNames, func(name string) bool { return matchesDNS(r.Value, name) })
		case "URI":
			for _, u := range cert.URIs {
				below, open := strings.CutSuffix(r.Value, "*")
				if text := u.String(); text == r.Value || open && strings.HasPrefix(text, below) && len(text) > len(below) {
					return true
				}
			}
		}
		return false
	})
}

// matchesDNS compares names; "*.x" stands for one name below x.
func matchesDNS(pattern, name string) bool {
	if pattern == "*" || strings.EqualFold(pattern, name) {
		return name != ""
	}
	domain, wild := strings.CutPrefix(pattern, "*.")
	_, rest, found := strings.Cut(name, ".")
	return wild && found && strings.EqualFold(rest, domain)
}
