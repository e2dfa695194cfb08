package cli

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// lastMost is how far back last~N reaches: a page of the list.
const lastMost = 99

// executionRefs lets people name an execution by when it started: last is the
// latest one that no other started, last~1 the one before it. Until it is looked up, last~N is the id
// -1-N, which no execution has.
var executionRefs = kong.TypeMapper(reflect.TypeFor[event.ID](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("id", &text); err != nil {
		return err
	}
	id, err := parseExecutionRef(text)
	target.SetInt(int64(id))
	return err
}))

func parseExecutionRef(text string) (event.ID, error) {
	if rest, ok := strings.CutPrefix(text, "last"); ok {
		back, counted := strings.CutPrefix(rest, "~")
		switch n, err := strconv.Atoi(back); {
		case rest == "":
			return -1, nil
		case counted && err == nil && n >= 0 && n <= lastMost:
			return event.ID(-1 - n), nil
		}
		return 0, invalidf("%q is no execution: last is the latest one, last~1 the one before it, up to last~%d", text, lastMost)
	}
	id, err := event.ParseID(text)
	if err != nil {
		return 0, invalidf("%q is no execution: want an id as noetl list shows it, or last for the latest one", text)
	}
	return id, nil
}

// lookUp puts the ids of executions that were named by when they started into
// the arguments of a command.
func lookUp(ctx context.Context, chosen *kong.Node, c *connection) error {
	var refs []reflect.Value
	for _, p := range chosen.Positional {
		if p.Target.Type() == reflect.TypeFor[event.ID]() && p.Target.Int() < 0 {
			refs = append(refs, p.Target)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	cl, err := c.client("")
	if err != nil {
		return err
	}
	rows, err := cl.Executions(ctx, client.ExecutionFilter{Limit: lastMost + 1})
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(x client.Execution) bool { return x.ParentExecutionID != 0 })
	for _, ref := range refs {
		back := int(-1 - ref.Int())
		if back >= len(rows) {
			return event.Errorf(event.NotFound, "there is no such execution: the server lists %s of the latest", plural(len(rows), "execution"))
		}
		ref.SetInt(int64(rows[back].ExecutionID))
	}
	return nil
}
