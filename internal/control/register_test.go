package control_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func TestRegisteringStoresVersionsOfPlainAndEncodedContent(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		plain := r.register(p, linear)
		encoded := r.register(p, base64.StdEncoding.EncodeToString([]byte(linear)))
		if plain.Version != 1 || encoded.Version != 2 || plain.Content != encoded.Content {
			t.Errorf("versions %d and %d", plain.Version, encoded.Version)
		}
		if plain.Path != "test/linear" || plain.Kind != "playbook" || string(plain.Meta) != `{"team":"a"}` {
			t.Errorf("entry is %+v", plain)
		}
		var doc struct {
			Metadata struct{ Name string }
			Workload map[string]int
		}
		if err := json.Unmarshal(plain.Payload, &doc); err != nil || doc.Metadata.Name != "linear" || doc.Workload["n"] != 1 {
			t.Errorf("payload is %s, %v", plain.Payload, err)
		}
		latest, err := p.Entry(t.Context(), control.EntryRef{Path: "test/linear"})
		if err != nil || latest.CatalogID != encoded.CatalogID {
			t.Errorf("latest is %+v, %v", latest, err)
		}
		listed, err := p.Entries(t.Context(), store.EntryFilter{Kind: "Playbook"})
		if err != nil || len(listed) != 2 {
			t.Errorf("listed %d, %v", len(listed), err)
		}
	})
}

func TestWhatCannotBeRegistered(t *testing.T) {
	for name, c := range map[string]struct{ content, says string }{
		"text":               {"hello", "YAML"},
		"broken YAML":        {"a: [", "YAML"},
		"no metadata":        {"kind: Playbook", "metadata"},
		"no path":            {"kind: Credential\nmetadata: {x: 1}", "metadata.path"},
		"an unknown kind":    {"kind: Banana\nmetadata: {name: x}", "Banana"},
		"a playbook's error": {strings.Replace(linear, "step: b}", "step: nowhere}", 1), "nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				p := newRig(t).plane(nil, quiet)
				_, err := p.Register(t.Context(), control.RegisterRequest{Content: c.content})
				wantCode(t, err, event.Invalid, "")
				if !strings.Contains(err.Error(), c.says) {
					t.Errorf("message is %q, want it to mention %q", err, c.says)
				}
				if listed, _ := p.Entries(t.Context(), store.EntryFilter{}); len(listed) != 0 {
					t.Errorf("stored %+v", listed)
				}
			})
		})
	}
}

func TestOtherKindsNeedOnlyMetadata(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		e := r.register(p, "kind: Credential\nmetadata: {name: db}\ndata: {1: x, f: .inf}")
		if e.Kind != "credential" || e.Path != "db" || !json.Valid(e.Payload) {
			t.Errorf("entry is %+v", e)
		}
		_, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "db"})
		wantCode(t, err, event.Invalid, "")
	})
}

func TestSlashesAroundAPathDoNotMatter(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		entry := r.register(p, strings.Replace(single, "test/single", "/test/slashed/", 1))
		if entry.Path != "test/slashed" {
			t.Errorf("it is stored under %q", entry.Path)
		}
		for _, path := range []string{"test/slashed", "/test/slashed", "test/slashed/"} {
			if _, err := p.Entry(t.Context(), control.EntryRef{Path: path}); err != nil {
				t.Errorf("%q: %v", path, err)
			}
		}
	})
}

func TestAPathIsPrintable(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		for _, bad := range []string{"a\x00b", "a\nb", "a\x1b[2J"} {
			_, err := p.Register(t.Context(), control.RegisterRequest{Content: single, Path: bad})
			wantCode(t, err, event.Invalid, "")
		}
		if e, err := p.Register(t.Context(), control.RegisterRequest{Content: single, Path: "żółw/🐢 a"}); err != nil || e.Entry.Path != "żółw/🐢 a" {
			t.Errorf("%q: %v", e.Entry.Path, err)
		}
	})
}

func TestAPoolNobodyCanServeIsRefused(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		entry := r.register(p, single)
		_, err := p.Execute(t.Context(), control.ExecuteRequest{CatalogID: entry.CatalogID, Pool: "a.b>*"})
		wantCode(t, err, event.Invalid, "")
	})
}

func TestABrokenDocumentIsRefusedWithItsPlace(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		_, err := p.Register(t.Context(), control.RegisterRequest{Content: "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: a\nworkflow: [\n"})
		wantCode(t, err, event.Invalid, "")
		if !strings.Contains(err.Error(), "content:4:") {
			t.Errorf("the error does not say where: %v", err)
		}
	})
}
