package node_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/secret/sealed"
)

// sealingServer answers as a server does that seals for the key it was told.
func sealingServer(t *testing.T, plain string) (*client.Client, func() string) {
	t.Helper()
	var key string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/worker/pool/register":
			var said event.Registration
			_ = json.NewDecoder(r.Body).Decode(&said)
			var runtime map[string]string
			_ = json.Unmarshal(said.Runtime, &runtime)
			if said.Name == "w" && said.Kind == event.KindWorkerPool {
				key = runtime["worker_public_key"]
			}
			_, _ = w.Write([]byte(`{}`))
		case "/api/secrets/resolve":
			if key == "" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":"no key","code":"bad_request","reason":"no_pubkey"}`))
				return
			}
			if plain == "" {
				_, _ = w.Write([]byte(`{"secrets":[{"alias":"a","data":1}]}`))
				return
			}
			var q event.SecretRequest
			_ = json.NewDecoder(r.Body).Decode(&q)
			public, err := sealed.ParsePublic(key)
			if err != nil {
				t.Error(err)
				return
			}
			box, err := sealed.Seal(public, sealed.Binding{Execution: q.ExecutionID, Aliases: q.Aliases}, []byte(plain))
			if err != nil {
				t.Error(err)
			}
			_ = json.NewEncoder(w).Encode(event.SecretAnswer{Sealed: &box})
		}
	}))
	t.Cleanup(srv.Close)
	cl, err := client.New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	return cl, func() string { return key }
}

func TestAKeyringMakesItselfKnownAndOpensWhatItGets(t *testing.T) {
	t.Parallel()
	cl, key := sealingServer(t, `[{"alias":"a","type":"secret","data":"v"}]`)
	ring, said, err := node.NewKeyring(cl, "w", event.Registration{Runtime: json.RawMessage(`{"kind":"go"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if text := string(said.Runtime); !strings.Contains(text, `"kind":"go"`) || !strings.Contains(text, "worker_public_key") {
		t.Errorf("registration %s", text)
	}
	q := event.SecretRequest{ExecutionID: 7, WorkerID: "w", Aliases: []string{"a"}}
	got, err := ring.ResolveSecrets(t.Context(), q)
	if err != nil || len(got) != 1 || string(got[0].Data) != `"v"` || key() == "" {
		t.Errorf("%v, %v", got, err)
	}
	// A process that took over the name finds its predecessor's key registered.
	other, _, err := node.NewKeyring(cl, "w", event.Registration{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.ResolveSecrets(t.Context(), q); event.CodeOf(err) != event.Unavailable {
		t.Errorf("secrets sealed for another process: %v", err)
	}
}

func TestAKeyringRefusesSecretsInTheClear(t *testing.T) {
	t.Parallel()
	cl, _ := sealingServer(t, "")
	ring, _, err := node.NewKeyring(cl, "w", event.Registration{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ring.ResolveSecrets(t.Context(), event.SecretRequest{WorkerID: "w", Aliases: []string{"a"}}); err == nil {
		t.Errorf("took %v", got)
	}
}

func TestSecretsOfTheEnvironmentMustBeThere(t *testing.T) {
	t.Parallel()
	lookup := func(name string) (string, bool) { v, ok := map[string]string{"A": "1", "B": ""}[name]; return v, ok }
	got, err := node.EnvSecrets([]string{"A", " ", ""}, lookup)
	if err != nil || len(got) != 1 || got["A"] != "1" {
		t.Errorf("%v, %v", got, err)
	}
	for _, name := range []string{"B", "C"} {
		if _, err := node.EnvSecrets([]string{"A", name}, lookup); event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
