package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// sendFlags are common to what is sent to an execution.
type sendFlags struct {
	Step  string `help:"Only for this step." placeholder:"STEP"`
	Index *int   `help:"Only for this iteration." placeholder:"N"`
	By    string `help:"Who sends it; the name of the user when not given." placeholder:"NAME"`
	outputFlags
}

type signalCommand struct {
	serverFlags
	sendFlags
	Execution event.ID `arg:"" help:"Execution id."`
	Name      string   `arg:"" help:"Name of the signal."`
	Data      string   `help:"What is sent with it, as JSON. @FILE reads a file." placeholder:"JSON"`
	Set       []string `help:"Set one key of what is sent; the value is JSON if it reads as JSON, else text." placeholder:"KEY=VALUE" sep:"none"`
}

// Run sends a signal.
func (c *signalCommand) Run(ctx context.Context, env *Env) error {
	data, err := c.data()
	if err != nil {
		return err
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	return c.send(ctx, env, cl, c.Execution, c.Name, data)
}

// data is any JSON, or an object when single keys are set.
func (c *signalCommand) data() (json.RawMessage, error) {
	if len(c.Set) > 0 {
		return payloadFlags{Payload: c.Data, Set: c.Set}.value()
	}
	text := c.Data
	if name, ok := strings.CutPrefix(text, "@"); ok {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, invalidf("read data: %v", err)
		}
		text = string(b)
	}
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, invalidf("--data is not JSON; text is written with quotes, as in '\"yes\"'")
	}
	return json.RawMessage(text), nil
}

func (f sendFlags) send(ctx context.Context, env *Env, cl *client.Client, id event.ID, name string, data json.RawMessage) error {
	by := f.By
	if by == "" {
		if u, err := user.Current(); err == nil {
			by = u.Username
		}
	}
	a, err := cl.Signal(ctx, id, name, client.SignalRequest{Data: data, Step: f.Step, Index: f.Index, Sender: by})
	if err != nil {
		return err
	}
	if f.machine() {
		return f.print(env, a)
	}
	switch a.Status {
	case "delivered":
		fmt.Fprintf(env.Stdout, "%s sent; %d waited for it\n", name, a.Woken)
	default:
		fmt.Fprintf(env.Stdout, "%s sent; nobody waits for it yet, so it is kept for the first that will\n", name)
	}
	return nil
}

// answerFlags are common to yes and no.
type answerFlags struct {
	serverFlags
	sendFlags
	Execution event.ID `arg:"" help:"Execution id."`
	Name      string   `arg:"" optional:"" help:"Name of the approval; may be left out when only one is asked for."`
	Comment   string   `short:"c" help:"Why; kept in the log." placeholder:"TEXT"`
}

type (
	approveCommand struct{ answerFlags }
	rejectCommand  struct{ answerFlags }
)

// Run says yes.
func (c *approveCommand) Run(ctx context.Context, env *Env) error { return c.answer(ctx, env, true) }

// Run says no.
func (c *rejectCommand) Run(ctx context.Context, env *Env) error { return c.answer(ctx, env, false) }

func (c *answerFlags) answer(ctx context.Context, env *Env, yes bool) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	name := c.Name
	if name == "" {
		if name, err = c.only(ctx, cl); err != nil {
			return err
		}
	}
	answer := map[string]any{"approved": yes}
	if c.Comment != "" {
		answer["comment"] = c.Comment
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return c.send(ctx, env, cl, c.Execution, name, data)
}

// only is the name of the one approval that is asked for.
func (c *answerFlags) only(ctx context.Context, cl *client.Client) (string, error) {
	waits, err := cl.Waits(ctx, c.Execution)
	if err != nil {
		return "", err
	}
	var names []string
	for _, w := range waits {
		if w.Approval && (c.Step == "" || c.Step == w.Step) && !slices.Contains(names, w.Signal) {
			names = append(names, w.Signal)
		}
	}
	switch len(names) {
	case 0:
		return "", invalidf("execution %s asks for no approval now; see noetl waits %s", c.Execution, c.Execution)
	case 1:
		return names[0], nil
	}
	return "", invalidf("execution %s asks for several approvals; name one of %s", c.Execution, strings.Join(names, ", "))
}

type waitsCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	outputFlags
}

// Run lists what an execution waits for.
func (c *waitsCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	waits, err := cl.Waits(ctx, c.Execution)
	if err != nil {
		return err
	}
	if c.form() == "name" {
		for _, w := range waits {
			fmt.Fprintln(env.Stdout, orText(w.Signal, w.Step))
		}
		return nil
	}
	if c.machine() {
		return c.print(env, waits)
	}
	if len(waits) == 0 {
		fmt.Fprintln(env.Stdout, "nothing is waited for that comes from outside")
	}
	for _, w := range waits {
		fmt.Fprintln(env.Stdout, waitLine(w))
		if len(w.Form) > 0 {
			fmt.Fprintf(env.Stdout, "  form: %s\n", w.Form)
		}
	}
	return nil
}

func waitLine(w client.SignalWait) string {
	text := w.Step
	if w.Index != nil {
		text += fmt.Sprintf("[%d]", *w.Index)
	}
	text += "  " + w.For
	if w.Signal != "" {
		text += " " + w.Signal
	}
	if w.Message != "" {
		text += ": " + oneLine(w.Message, 200)
	}
	if !w.Since.IsZero() {
		text += " (since " + w.Since.Local().Format(time.DateTime)
		if !w.Until.IsZero() {
			text += ", until " + w.Until.Local().Format(time.DateTime)
		}
		text += ")"
	}
	return text
}
