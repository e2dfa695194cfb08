package provider

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The keys, the time and the signatures are those of AWS's published suite of
// signatures, version 4.
func TestRequestsAreSignedAsAWSPublished(t *testing.T) {
	t.Parallel()
	keys := awsKeys{id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	for _, c := range []struct{ name, method, url, body, kind, signature string }{
		{"get-vanilla", "GET", "https://example.amazonaws.com/", "", "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		{"get-vanilla-query-order-key-case", "GET", "https://example.amazonaws.com/?Param2=value2&Param1=value1", "", "", "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		{"post-vanilla", "POST", "https://example.amazonaws.com/", "", "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		{"post-x-www-form-urlencoded", "POST", "https://example.amazonaws.com/", "Param1=value1", "application/x-www-form-urlencoded", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := http.NewRequest(c.method, c.url, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			sign(r, []byte(c.body), keys, "us-east-1", "service", at)
			if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+c.signature) {
				t.Errorf("Authorization %s\nwant signature %s", got, c.signature)
			}
		})
	}
}
