package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// awsKeys are what AWS requests are signed with.
type awsKeys struct{ id, secret, session string }

// sign puts a signature, version 4, on a request: the header Authorization over
// all headers that are set so far, the host and the time.
func sign(r *http.Request, body []byte, k awsKeys, region, service string, at time.Time) {
	at = at.UTC()
	stamp, day := at.Format("20060102T150405Z"), at.Format("20060102")
	r.Header.Set("X-Amz-Date", stamp)
	if k.session != "" {
		r.Header.Set("X-Amz-Security-Token", k.session)
	}
	names := []string{"host"}
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		v := r.Host
		if name != "host" {
			v = strings.Join(r.Header.Values(name), ",")
		} else if v == "" {
			v = r.URL.Host
		}
		headers.WriteString(name + ":" + strings.Join(strings.Fields(v), " ") + "\n")
	}
	signed := strings.Join(names, ";")
	path := r.URL.EscapedPath()
	if path == "" {
		path = "/"
	}
	canonical := strings.Join([]string{r.Method, path, canonicalQuery(r.URL.Query()), headers.String(), signed, hexSum(body)}, "\n")
	scope := day + "/" + region + "/" + service + "/aws4_request"
	key := []byte("AWS4" + k.secret)
	for _, part := range []string{day, region, service, "aws4_request"} {
		key = mac(key, part)
	}
	signature := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+stamp+"\n"+scope+"\n"+hexSum([]byte(canonical))))
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+k.id+"/"+scope+", SignedHeaders="+signed+", Signature="+signature)
}

func canonicalQuery(q url.Values) string {
	return strings.ReplaceAll(q.Encode(), "+", "%20") // Encode sorts by key, and keeps the order of a key's values
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
