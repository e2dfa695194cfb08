package playbook_test

import (
	"encoding/json"
	"testing"

	"github.com/noetl/noetl-go/internal/playbook"
)

const formDoc = `metadata:
  name: load
  description: |
    Loads **orders**.
workload:
  # Which table to fill.
  # ui:description=Table to fill
  # ui:enum=[orders, "items", orders]
  table: orders # see the manual
  limit: 10
  ratio: 0.5
  dry: false
  password: hunter2 # ui:secret
  db: # ui:credential=pg_*
    host: h
    ports: [1, 2]
  none:
  text: "a # ui:secret"
  # ui:nonsense
  when: "{{ today }}"
`

func TestFormIsDerivedFromTheWorkload(t *testing.T) {
	t.Parallel()
	form := playbook.FormOf([]byte(formDoc))
	if form.Title != "load" || form.Description != "Loads **orders**.\n" || !form.Exposed {
		t.Errorf("%+v", form)
	}
	want := []string{
		`{"name":"table","kind":"enum","default":"orders","description":"Table to fill","secret":false,"credential_glob":null,"options":["orders","items"],"children":[]}`,
		`{"name":"limit","kind":"integer","default":10,"description":null,"secret":false,"credential_glob":null,"options":[],"children":[]}`,
		`{"name":"ratio","kind":"number","default":0.5,"description":null,"secret":false,"credential_glob":null,"options":[],"children":[]}`,
		`{"name":"dry","kind":"boolean","default":false,"description":null,"secret":false,"credential_glob":null,"options":[],"children":[]}`,
		`{"name":"password","kind":"string","default":null,"description":null,"secret":true,"credential_glob":null,"options":[],"children":[]}`,
		`{"name":"db","kind":"object","default":{"host":"h","ports":[1,2]},"description":null,"secret":false,"credential_glob":"pg_*","options":[],"children":[` +
			`{"name":"host","kind":"string","default":"h","description":null,"secret":false,"credential_glob":null,"options":[],"children":[]},` +
			`{"name":"ports","kind":"array","default":[1,2],"description":null,"secret":false,"credential_glob":null,"options":[],"children":[]}]}`,
		`{"name":"none","kind":"null","default":null,"description":null,"secret":false,"credential_glob":null,"options":[],"children":[]}`,
		`{"name":"text","kind":"string","default":"a # ui:secret","description":null,"secret":false,"credential_glob":null,"options":[],"children":[]}`,
		`{"name":"when","kind":"string","default":"{{ today }}","description":null,"secret":false,"credential_glob":null,"options":[],"children":[]}`,
	}
	if len(form.Fields) != len(want) {
		t.Fatalf("%d fields, want %d", len(form.Fields), len(want))
	}
	for i, f := range form.Fields {
		got, err := json.Marshal(f)
		if err != nil || string(got) != want[i] {
			t.Errorf("field %d\n got %s\nwant %s (%v)", i, got, want[i], err)
		}
	}
}

func TestUnreadableDocumentsHaveAnEmptyForm(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"", "{", "a: [", "- 1", "workload: 5", "workload: [a]", "workload:", "\x00", "metadata: 3\nworkload: {}",
		"a: &a [*a]\nworkload: *a", "workload: &w {a: *w}", "workload: {<<: 3}",
	} {
		if form := playbook.FormOf([]byte(src)); form.Fields == nil {
			t.Errorf("%q: no list of fields", src)
		}
	}
	if form := playbook.FormOf([]byte("metadata: {title: T, name: n, exposed_in_ui: false}")); form.Title != "T" || form.Exposed {
		t.Errorf("%+v", form)
	}
}
