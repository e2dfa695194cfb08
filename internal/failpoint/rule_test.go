package failpoint

import "testing"

func TestRulesSayWhatHappensWhen(t *testing.T) {
	t.Parallel()
	rules, err := parse(" append.after=kill@3; commit.after=error@*7;publish.before=delay:20ms ")
	if err != nil || len(rules) != 3 {
		t.Fatalf("parse = %+v, %v", rules, err)
	}
	for i, c := range []struct {
		due  []int64
		not  []int64
		what action
	}{
		{[]int64{3}, []int64{1, 2, 4, 6}, kill},
		{[]int64{7, 14}, []int64{1, 8}, fails},
		{[]int64{1}, []int64{2}, delay},
	} {
		r := rules[i]
		if r.action != c.what {
			t.Errorf("rule %d is %s, want %s", i, r.action, c.what)
		}
		for _, n := range c.due {
			if !r.due(n) {
				t.Errorf("rule %d is not due at hit %d", i, n)
			}
		}
		for _, n := range c.not {
			if r.due(n) {
				t.Errorf("rule %d is due at hit %d", i, n)
			}
		}
	}
}

func TestAWrongRuleIsRefused(t *testing.T) {
	t.Parallel()
	for _, spec := range []string{"nowhere=kill", "append.after", "append.after=explode", "append.after=kill@0", "append.after=kill@x", "publish.before=delay", "publish.before=delay:-1s"} {
		if r, err := parse(spec); err == nil {
			t.Errorf("parse(%q) = %+v, want an error", spec, r)
		}
	}
}

func TestAUsualBuildHasNoFailpoints(t *testing.T) {
	t.Parallel()
	if Enabled {
		t.Skip("built with failpoints")
	}
	if err := Configure("append.after=kill"); err == nil {
		t.Error("a usual build accepted a failpoint")
	}
	if err := Configure(""); err != nil {
		t.Errorf("Configure(\"\") = %v", err)
	}
	if err := Hit(AppendAfter); err != nil {
		t.Errorf("Hit = %v", err)
	}
}
