package playbook

import "testing"

// The grammar serves the reader, the schema and the reference alike, so what
// it says has to be complete.
func TestTheGrammarIsComplete(t *testing.T) {
	t.Parallel()
	named := map[string]bool{}
	for _, o := range objects() {
		if named[o.name] {
			t.Errorf("two objects are named %s", o.name)
		}
		named[o.name] = true
		if o.title == "" || o.doc == "" {
			t.Errorf("object %s has no title or no doc", o.name)
		}
		keys := map[string]bool{}
		for _, f := range o.fields {
			where := o.name + "." + f.name
			if keys[f.name] {
				t.Errorf("%s is there twice", where)
			}
			keys[f.name] = true
			if f.forms == 0 || f.doc == "" {
				t.Errorf("%s has no forms or no doc", where)
			}
			if f.words != nil && f.forms&asText == 0 {
				t.Errorf("%s has words and takes no text", where)
			}
			if f.object != nil && f.forms&asDict == 0 || f.items != nil && f.forms&asList == 0 {
				t.Errorf("%s describes a form that it does not take", where)
			}
			standings := 0
			for _, s := range []string{f.modern, f.idle, f.gone} {
				if s != "" {
					standings++
				}
			}
			if standings > 1 || standings > 0 && f.required {
				t.Errorf("%s has more than one standing", where)
			}
		}
	}
}
