package schema_test

import (
	"slices"
	"testing"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/schema"
)

func TestEveryKindIsDeclaredInFull(t *testing.T) {
	t.Parallel()
	names := schema.Names()
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("kinds are not sorted or not unique: %v", names)
	}
	for _, k := range schema.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			checkKind(t, k)
		})
	}
}

func checkKind(t *testing.T, k *schema.Kind) {
	if k.Doc == "" || k.Returns == "" {
		t.Error("doc or returns is missing")
	}
	names := k.Names()
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a field is declared twice: %v", names)
	}
	for _, f := range k.Fields {
		if f.Doc == "" || f.Shape == 0 {
			t.Errorf("%s has no doc or no shape", f.Name)
		}
		if f.Words != nil && f.Default != "" && !slices.Contains(f.Words, f.Default) {
			t.Errorf("the default of %s is %q, which is none of its words", f.Name, f.Default)
		}
	}
	for _, need := range k.Needs {
		for _, name := range need {
			if f, ok := k.Field(name); !ok || f.Unavailable != "" {
				t.Errorf("needs %s, which it has not", name)
			}
		}
	}
	if !k.Open {
		if _, ok := k.Field("timeout_seconds"); !ok {
			t.Error("has no timeout, which a worker reads for every kind")
		}
	}
}

func TestShapesTakeWhatTheyName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape schema.Shape
		takes []any
		not   []any
		words string
	}{
		{schema.Text, []any{"a", int64(1), 1.5, true}, []any{nil}, "text"},
		{schema.Code, []any{"a"}, []any{int64(1), true}, "text"},
		{schema.Flag, []any{true, "Yes", "off", int64(0)}, []any{"maybe", int64(2), 0.5}, "true or false"},
		{schema.Number, []any{int64(-1), 1.5, "12", "1e3"}, []any{"many", true}, "a number"},
		{
			schema.Duration,
			[]any{int64(0), 0.5, "30s", "1h30m", " 90 "},
			[]any{int64(-1), -0.5, "soon", "-5s", "5 m", true},
			"seconds or a time such as 30s or 5m",
		},
		{schema.List | schema.Map, nil, []any{"a", int64(1)}, "a list or a map"},
		{schema.Code | schema.List | schema.Map, []any{"a"}, []any{false}, "text, a list or a map"},
		{schema.Any, []any{"a", int64(1), false}, nil, "any value"},
	} {
		if got := c.shape.String(); got != c.words {
			t.Errorf("shape is called %q, want %q", got, c.words)
		}
		for _, v := range c.takes {
			if !c.shape.Scalar(v) {
				t.Errorf("%s refuses %v", c.shape, v)
			}
		}
		for _, v := range c.not {
			if c.shape.Scalar(v) {
				t.Errorf("%s takes %v", c.shape, v)
			}
		}
	}
}

// What the schema lets through, tools can read, and the other way round.
func TestShapesAreWhatToolsRead(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		"", " ", "30", " 90 ", "1.5", ".5", "1e3", "+5", "-1", "30s", "1m30s", "1.5h", "10 s", "5x", "s", "soon", "true", "No", " ON ",
		"off", "1", "0", "2", "maybe", int64(0), int64(1), int64(30), int64(-1), 0.5, -0.5, true, false,
	} {
		_, durationErr := tool.ParseDuration(v)
		if _, isFlag := v.(bool); !isFlag && schema.Duration.Scalar(v) != (durationErr == nil) {
			t.Errorf("%#v as a time: the schema says %v, tools say %v", v, schema.Duration.Scalar(v), durationErr)
		}
		_, flagErr := tool.Fields{"x": v}.Bool(false, "x")
		if schema.Flag.Scalar(v) != (flagErr == nil) {
			t.Errorf("%#v as a flag: the schema says %v, tools say %v", v, schema.Flag.Scalar(v), flagErr)
		}
	}
}
