package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func newVariable(name, value string) store.Variable {
	return store.Variable{Name: name, Type: "user_defined", Value: []byte(value), SourceStep: "fetch", CreatedAt: epoch}
}

// wantVariables compares variables; their values count as equal when they mean the same.
func wantVariables(t *testing.T, what string, want, got []store.Variable) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: %d variables, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		wantSame(t, what+" value", meaning(want[i].Value), meaning(got[i].Value))
		w, g := want[i], got[i]
		w.Value, g.Value = nil, nil
		wantSame(t, what, w, g)
	}
}

var variableTests = map[string]func(*testing.T, store.Store){
	"variables come back by name with every field": func(t *testing.T, s store.Store) {
		x := newID()
		b, a := newVariable("b", `{"deep":[1,"ü",null]}`), newVariable("a", `null`)
		a.Type, a.SourceStep, a.CreatedAt = "computed", "", epoch.Add(time.Second).In(time.FixedZone("x", 60))
		if err := s.SetVariables(t.Context(), x, []store.Variable{b, a}); err != nil {
			t.Fatal(err)
		}
		if err := s.SetVariables(t.Context(), newID(), []store.Variable{newVariable("a", `"other"`)}); err != nil {
			t.Fatal(err)
		}
		a.ExecutionID, b.ExecutionID, a.CreatedAt = x, x, epoch.Add(time.Second)
		wantVariables(t, "all", []store.Variable{a, b}, must[[]store.Variable](t)(s.Variables(t.Context(), x)))
		wantVariables(t, "of another execution", nil, must[[]store.Variable](t)(s.Variables(t.Context(), newID())))
	},
	"reading a variable by name counts and listing does not": func(t *testing.T, s store.Store) {
		x := newID()
		if err := s.SetVariables(t.Context(), x, []store.Variable{newVariable("a", `1`)}); err != nil {
			t.Fatal(err)
		}
		want := newVariable("a", `1`)
		want.ExecutionID = x
		for i := 1; i <= 3; i++ {
			want.AccessCount, want.AccessedAt = i, after(i)
			wantVariables(t, "read", []store.Variable{want}, []store.Variable{must[store.Variable](t)(s.Variable(t.Context(), x, "a", after(i)))})
			wantVariables(t, "listed", []store.Variable{want}, must[[]store.Variable](t)(s.Variables(t.Context(), x)))
		}
		for _, name := range []string{"b", "A", ""} {
			_, err := s.Variable(t.Context(), x, name, epoch)
			wantErr(t, "unknown variable", err, store.ErrNotFound)
		}
	},
	"a variable that is set again keeps its age and its accesses": func(t *testing.T, s store.Store) {
		x := newID()
		set := func(v ...store.Variable) {
			t.Helper()
			if err := s.SetVariables(t.Context(), x, v); err != nil {
				t.Fatal(err)
			}
		}
		set(newVariable("a", `1`))
		must[store.Variable](t)(s.Variable(t.Context(), x, "a", after(5)))
		next := newVariable("a", `2`)
		next.Type, next.SourceStep, next.CreatedAt = "step_result", "load", after(9)
		set(newVariable("a", `"lost"`), next)
		next.ExecutionID, next.CreatedAt, next.AccessedAt, next.AccessCount = x, epoch, after(5), 1
		wantVariables(t, "replaced", []store.Variable{next}, must[[]store.Variable](t)(s.Variables(t.Context(), x)))
		set()
	},
	"variables are removed one by one or all": func(t *testing.T, s store.Store) {
		x, other := newID(), newID()
		for _, id := range []event.ID{x, other} {
			vars := []store.Variable{newVariable("a", `1`), newVariable("b", `2`), newVariable("c", `3`)}
			if err := s.SetVariables(t.Context(), id, vars); err != nil {
				t.Fatal(err)
			}
		}
		remove := func(name string) int { return must[int](t)(s.DeleteVariables(t.Context(), x, name)) }
		wantSame(t, "one", 1, remove("b"))
		wantSame(t, "again", 0, remove("b"))
		wantSame(t, "all", 2, remove(""))
		wantSame(t, "all again", 0, remove(""))
		wantSame(t, "of the other execution", 3, len(must[[]store.Variable](t)(s.Variables(t.Context(), other))))
	},
	"no access is lost under concurrency": func(t *testing.T, s store.Store) {
		const readers, reads = 8, 10
		x := newID()
		if err := s.SetVariables(t.Context(), x, []store.Variable{newVariable("a", `1`)}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range readers {
			wg.Go(func() {
				for range reads {
					if _, err := s.Variable(t.Context(), x, "a", epoch); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		wantSame(t, "accesses", readers*reads, must[[]store.Variable](t)(s.Variables(t.Context(), x))[0].AccessCount)
	},
}

func newRuntime(kind, name string) store.Runtime {
	return store.Runtime{
		RuntimeID: newID(), Name: name, Kind: kind, URI: "http://127.0.0.1:1", Status: "ready", Labels: []byte(`{"zone":"a"}`),
		Capabilities: []byte(`["http"]`), Runtime: []byte(`{"kind":"go"}`), Capacity: 4, Heartbeat: epoch, CreatedAt: epoch, UpdatedAt: epoch,
	}
}

// wantRuntime compares runtimes; JSON counts as equal when it means the same.
func wantRuntime(t *testing.T, what string, want, got store.Runtime) {
	t.Helper()
	for _, r := range []*store.Runtime{&want, &got} {
		for _, doc := range []*[]byte{&r.Labels, &r.Capabilities, &r.Runtime} {
			if len(*doc) > 0 {
				*doc, _ = json.Marshal(meaning(*doc))
			}
		}
	}
	wantSame(t, what, want, got)
}

var runtimeTests = map[string]func(*testing.T, store.Store){
	"a runtime is known by kind and name and keeps its id": func(t *testing.T, s store.Store) {
		first := newRuntime("worker_pool", "w1")
		wantRuntime(t, "stored", first, must[store.Runtime](t)(s.PutRuntime(t.Context(), first)))
		wantRuntime(t, "found", first, must[store.Runtime](t)(s.Runtime(t.Context(), "worker_pool", "w1")))
		next := store.Runtime{
			RuntimeID: newID(), Kind: "worker_pool", Name: "w1", Status: "draining", Heartbeat: after(3), CreatedAt: after(3), UpdatedAt: after(3),
		}
		got := must[store.Runtime](t)(s.PutRuntime(t.Context(), next))
		next.RuntimeID, next.CreatedAt = first.RuntimeID, first.CreatedAt
		wantRuntime(t, "stored again", next, got)
		wantRuntime(t, "found again", next, must[store.Runtime](t)(s.Runtime(t.Context(), "worker_pool", "w1")))
		for _, key := range [][2]string{{"broker", "w1"}, {"worker_pool", "W1"}, {"", ""}} {
			_, err := s.Runtime(t.Context(), key[0], key[1])
			wantErr(t, "unknown runtime", err, store.ErrNotFound)
		}
	},
	"a heartbeat moves nothing else": func(t *testing.T, s store.Store) {
		r := must[store.Runtime](t)(s.PutRuntime(t.Context(), newRuntime("server_api", "s")))
		r.Heartbeat = after(15)
		wantRuntime(t, "beaten", r, must[store.Runtime](t)(s.BeatRuntime(t.Context(), "server_api", "s", after(15))))
		wantRuntime(t, "found", r, must[store.Runtime](t)(s.Runtime(t.Context(), "server_api", "s")))
		_, err := s.BeatRuntime(t.Context(), "server_api", "other", epoch)
		wantErr(t, "unknown runtime", err, store.ErrNotFound)
	},
	"runtimes are listed by kind and name with a pattern": func(t *testing.T, s store.Store) {
		for _, key := range [][2]string{{"worker_pool", "gpu_1"}, {"worker_pool", "gpuX2"}, {"worker_pool", "Cpu"}, {"broker", "gpu"}, {"server_api", "a%"}} {
			must[store.Runtime](t)(s.PutRuntime(t.Context(), newRuntime(key[0], key[1])))
		}
		for name, c := range map[string]struct {
			filter store.RuntimeFilter
			want   []string
		}{
			"all":                  {store.RuntimeFilter{}, []string{"gpu", "a%", "Cpu", "gpuX2", "gpu_1"}},
			"kind":                 {store.RuntimeFilter{Kind: "worker_pool"}, []string{"Cpu", "gpuX2", "gpu_1"}},
			"any text":             {store.RuntimeFilter{Name: "gpu%"}, []string{"gpu", "gpuX2", "gpu_1"}},
			"with case":            {store.RuntimeFilter{Name: "GPU%"}, nil},
			"one character":        {store.RuntimeFilter{Kind: "worker_pool", Name: "gpu__"}, []string{"gpuX2", "gpu_1"}},
			"escaped":              {store.RuntimeFilter{Name: `gpu\_%`}, []string{"gpu_1"}},
			"escaped percent":      {store.RuntimeFilter{Name: `a\%`}, []string{"a%"}},
			"the whole name":       {store.RuntimeFilter{Name: "gp"}, nil},
			"kind nobody is":       {store.RuntimeFilter{Kind: "Broker"}, nil},
			"a pattern that nests": {store.RuntimeFilter{Name: "%p%u%"}, []string{"gpu", "Cpu", "gpuX2", "gpu_1"}},
		} {
			var got []string
			for _, r := range must[[]store.Runtime](t)(s.ListRuntimes(t.Context(), c.filter)) {
				got = append(got, r.Name)
			}
			wantSame(t, name, c.want, got)
		}
	},
	"runtimes are removed by name and by silence": func(t *testing.T, s store.Store) {
		for i := range 4 {
			r := newRuntime("worker_pool", fmt.Sprint("w", i))
			r.Heartbeat = after(i)
			must[store.Runtime](t)(s.PutRuntime(t.Context(), r))
		}
		wantSame(t, "removed", true, must[bool](t)(s.DeleteRuntime(t.Context(), "worker_pool", "w0")))
		wantSame(t, "removed again", false, must[bool](t)(s.DeleteRuntime(t.Context(), "worker_pool", "w0")))
		wantSame(t, "of another kind", false, must[bool](t)(s.DeleteRuntime(t.Context(), "broker", "w1")))
		wantSame(t, "purged", 2, must[int](t)(s.PurgeRuntimes(t.Context(), after(3))))
		wantSame(t, "purged again", 0, must[int](t)(s.PurgeRuntimes(t.Context(), after(3))))
		wantSame(t, "left", 1, len(must[[]store.Runtime](t)(s.ListRuntimes(t.Context(), store.RuntimeFilter{}))))
	},
	"many registrations of one name leave one row": func(t *testing.T, s store.Store) {
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if _, err := s.PutRuntime(t.Context(), newRuntime("worker_pool", "same")); err != nil {
					t.Errorf("PutRuntime = %v", err)
				}
			})
		}
		wg.Wait()
		wantSame(t, "rows", 1, len(must[[]store.Runtime](t)(s.ListRuntimes(t.Context(), store.RuntimeFilter{}))))
	},
}
