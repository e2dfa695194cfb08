package api_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestVariablesAreAcceptedInEveryShape(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, list string }{
		"a list": {
			`{"variables":[{"var_name":"b","var_value":{"x":1},"var_type":"step_result","source_step":"s"},{"var_name":"a","var_value":null}]}`,
			`[["a","user_defined",null,null],["b","step_result",{"x":1},"s"]]`,
		},
		"values by name with a description": {
			`{"variables":{"a":1,"b":[2]},"var_type":"computed","source_step":"s"}`,
			`[["a","computed",1,"s"],["b","computed",[2],"s"]]`,
		},
		"values by name": {
			`{"a":"x","b":18446744073709551615}`,
			`[["a","user_defined","x",null],["b","user_defined",18446744073709551615,null]]`,
		},
		"a variable called variables": {
			`{"variables":5,"a":true}`,
			`[["a","user_defined",true,null],["variables","user_defined",5,null]]`,
		},
		"one name twice": {
			`{"variables":[{"var_name":"a","var_value":1},{"var_name":"a","var_value":2}]}`,
			`[["a","user_defined",2,null]]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLiving(t, nil, nil)
			l.register(t, twoSteps)
			at := "/api/vars/" + l.execute(t, "demo/two")
			set := ask(t, l.Server, "POST", at, tc.body)
			if set.status != 200 || set.field(t, "status") != "ok" {
				t.Fatalf("set: %d %s", set.status, set.body)
			}
			var got []string
			rows, _ := tree(t, ask(t, l.Server, "GET", at, "").body).([]any)
			for _, r := range rows {
				m := r.(map[string]any)
				got = append(got, fmt.Sprint([]any{m["var_name"], m["var_type"], m["var_value"], m["source_step"]}))
			}
			var want []string
			for _, r := range tree(t, tc.list).([]any) {
				want = append(want, fmt.Sprint(r))
			}
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestVariablesAreReadAndDeleted(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	l.register(t, twoSteps)
	id := l.execute(t, "demo/two")
	at := "/api/vars/" + id
	ask(t, l.Server, "GET", at, "").want(t, 200, `[]`)
	ask(t, l.Server, "POST", at, `{"a":1,"b":2}`).want(t, 200,
		`{"execution_id":`+id+`,"variables_set":2,"var_names":["a","b"],"status":"ok"}`)
	ask(t, l.Server, "GET", at+"/a", "")
	one := ask(t, l.Server, "GET", at+"/a", "")
	if fmt.Sprint(one.field(t, "access_count")) != "2" || one.field(t, "accessed_at") == nil || fmt.Sprint(one.field(t, "var_value")) != "1" {
		t.Errorf("one: %s", one.body)
	}
	m := ask(t, l.Server, "GET", at+"?format=map", "")
	vars, _ := m.field(t, "variables").(map[string]any)
	a, _ := vars["a"].(map[string]any)
	if fmt.Sprint(m.field(t, "count")) != "2" || fmt.Sprint(m.field(t, "execution_id")) != id || fmt.Sprint(a["value"]) != "1" || a["type"] != "user_defined" {
		t.Errorf("map: %s", m.body)
	}
	ask(t, l.Server, "GET", at+"?format=xml", "").wantError(t, 422, "format")
	ask(t, l.Server, "GET", at+"/no", "").wantError(t, 404, "no")
	ask(t, l.Server, "DELETE", at+"/no", "").wantError(t, 404, "no")
	ask(t, l.Server, "DELETE", at+"/a", "").want(t, 200, `{"execution_id":`+id+`,"var_name":"a","status":"deleted"}`)
	ask(t, l.Server, "DELETE", at, "").want(t, 200, `{"execution_id":`+id+`,"variables_deleted":1,"status":"ok"}`)
	ask(t, l.Server, "DELETE", at, "").want(t, 200, `{"execution_id":`+id+`,"variables_deleted":0,"status":"ok"}`)
}

func TestVariablesThatCannotBeKeptAreRefusedTogether(t *testing.T) {
	t.Parallel()
	l := newLiving(t, nil, nil)
	l.register(t, twoSteps)
	at := "/api/vars/" + l.execute(t, "demo/two")
	for body, want := range map[string]struct {
		status int
		part   string
	}{
		`{"variables":{"a":1},"var_type":"magic"}`:                                     {422, "var_type"},
		`{"variables":[{"var_name":"a","var_value":1},{"var_name":"","var_value":1}]}`: {422, "var_name"},
		`{"variables":[{"var_name":"a","var_value":1},{"var_name":"b"}]}`:              {422, "var_value"},
		`{"variables":[{"var_name":3,"var_value":1}]}`:                                 {422, "var_name"},
		`[1]`: {422, "object"},
		`{`:   {400, ""},
		``:    {400, "empty"},
		`{"a":1,"big":"` + strings.Repeat("x", 1<<20) + `"}`: {413, "big"},
		`{"a":1,"` + strings.Repeat("n", 300) + `":1}`:       {422, "var_name"},
	} {
		ask(t, l.Server, "POST", at, body).wantError(t, want.status, want.part)
	}
	ask(t, l.Server, "GET", at, "").want(t, 200, `[]`)
	ask(t, l.Server, "POST", "/api/vars/12345", `{"a":1}`).wantError(t, 404, "12345")
	ask(t, l.Server, "POST", "/api/vars/abc", `{"a":1}`).wantError(t, 400, "abc")
}
