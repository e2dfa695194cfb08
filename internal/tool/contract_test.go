package tool_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
)

func TestDurationsAreSecondsOrGoDurations(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   any
		want time.Duration
		bad  string
	}{
		"whole seconds":       {int64(30), 30 * time.Second, ""},
		"fractions":           {1.5, 1500 * time.Millisecond, ""},
		"seconds as text":     {" 90 ", 90 * time.Second, ""},
		"a Go duration":       {"5m", 5 * time.Minute, ""},
		"words are refused":   {"soon", 0, "is not a duration"},
		"negative is refused": {int64(-1), 0, "negative"},
		"too long is refused": {1e300, 0, "too long"},
		"a list is refused":   {[]any{int64(1)}, 0, "is not a duration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tool.ParseDuration(tc.in)
			if tc.bad == "" && (err != nil || got != tc.want) {
				t.Errorf("got %s, %v; want %s", got, err, tc.want)
			}
			if tc.bad != "" && (err == nil || !strings.Contains(err.Error(), tc.bad)) {
				t.Errorf("error %v, want one with %q", err, tc.bad)
			}
		})
	}
}

func TestFieldsNameTheFieldTheyComplainAbout(t *testing.T) {
	t.Parallel()
	f := tool.Fields{"verify": "maybe", "headers": "x", "url": map[string]any{}, "timeout": "later", "off": "No"}
	_, boolErr := f.Bool(true, "verify_ssl", "verify")
	_, mapErr := f.Object("headers")
	_, textErr := f.String("endpoint", "url")
	_, timeErr := f.Duration("timeout")
	got := []string{boolErr.Error(), mapErr.Error(), textErr.Error(), timeErr.Error()}
	want := []string{
		`verify must be true or false, not "maybe"`,
		"headers must be a map of names to values, not text",
		"url must be text, not a map",
		`timeout: "later" is not a duration; write seconds (30) or a text such as 30s or 5m`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if off, err := f.Bool(true, "off"); off || err != nil {
		t.Errorf("No is %v, %v; want false", off, err)
	}
}

func TestBoundTakesTheSmallerLimit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		field   any
		command time.Duration
		want    time.Duration
	}{
		"nothing given: the default":       {nil, 0, time.Minute},
		"a field wins over the default":    {int64(5), 0, 5 * time.Second},
		"the command's limit caps a field": {"1h", 10 * time.Second, 10 * time.Second},
		"the command caps the default":     {nil, time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := &tool.Call{Config: map[string]any{"timeout": tc.field}, Timeout: tc.command}
			ctx, cancel, limit, err := call.Bound(context.Background(), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			defer cancel()
			if _, has := ctx.Deadline(); limit != tc.want || !has {
				t.Errorf("limit %s (deadline %v), want %s", limit, has, tc.want)
			}
		})
	}
}

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{1, 3, 7, 10, 1000} {
		c := tool.NewCapture(10)
		in := []byte("0123456789abcdefghijklmnopqrstuvwxyz")
		for at := 0; at < len(in); at += chunk {
			_, _ = c.Write(in[at:min(at+chunk, len(in))])
		}
		want := "01234\n... 26 bytes left out ...\nvwxyz"
		if diff := cmp.Diff(want, c.String()); diff != "" {
			t.Errorf("chunks of %d: %s", chunk, diff)
		}
	}
	small := tool.NewCapture(10)
	_, _ = small.Write([]byte("all of it"))
	if small.String() != "all of it" {
		t.Errorf("got %q", small.String())
	}
	broken := tool.NewCapture(10)
	_, _ = broken.Write([]byte{'a', 0xff, 'b'})
	if broken.String() != "a\uFFFDb" {
		t.Errorf("got %q", broken.String())
	}
}

func TestCleanEnvironHoldsNoSecretsOfTheWorker(t *testing.T) {
	t.Setenv("NOETL_INTERNAL_API_TOKEN", "secret")
	t.Setenv("PATH", "/bin")
	t.Setenv("EXTRA", "yes")
	env := tool.CleanEnviron(map[string]string{"HOME": "/elsewhere", "A": "1"}, "EXTRA")
	got := strings.Join(env, "\n")
	for _, want := range []string{"PATH=/bin", "HOME=/elsewhere", "A=1", "EXTRA=yes"} {
		if strings.Count("\n"+got+"\n", "\n"+want+"\n") != 1 {
			t.Errorf("environment lacks %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret") || strings.Count(got, "HOME=") != 1 {
		t.Errorf("environment:\n%s", got)
	}
}
