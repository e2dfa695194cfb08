package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type watchCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
}

// Run shows one execution as it happens: on the whole terminal, or line by line
// where there is none. Leaving does not touch the execution.
func (c *watchCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	in, out := asTerminal(env.Stdin), asTerminal(env.Stdout)
	if !env.Terminal || in == nil || out == nil || os.Getenv("TERM") == "dumb" {
		return followFlags{Wait: true}.follow(ctx, env, cl, c.Execution)
	}
	detail, err := cl.Execution(ctx, c.Execution)
	if err != nil {
		return err
	}
	w := newWatch(env, cl, detail)
	if err := w.run(ctx, in, out); err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, w.farewell())
	if w.interrupted {
		return exit(ExitInterrupted)
	}
	return nil
}

// asTerminal is the terminal behind a stream; nil when there is none.
func asTerminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// watch is the live view of one execution. One goroutine owns it; others send
// it what they get.
type watch struct {
	env      *Env
	client   *client.Client
	id       event.ID
	path     string
	version  int
	status   string
	err      string
	began    time.Time
	over     time.Time
	progress *progress
	tries    map[string]int // by step, when more than one
	events   *tail
	output   *tail
	lines    *stepLines

	width, height int
	scroll        int
	pane          string // output, events, or both
	asking        bool   // whether to cancel
	notice        string
	link          string // what is wrong with the connection
	interrupted   bool
}

func newWatch(env *Env, cl *client.Client, d client.Detail) *watch {
	w := &watch{
		env: env, client: cl, id: d.ExecutionID, path: d.Path, version: d.Version, status: d.Status, began: d.StartedAt, pane: "both",
		progress: newProgress(env, true), tries: map[string]int{}, events: newTail(), output: newTail(),
	}
	w.lines = &stepLines{out: w.output, named: true, open: map[event.ID]string{}}
	return w
}

// run owns the terminal from the first frame to the last, whatever ends it.
func (w *watch) run(ctx context.Context, in, out *os.File) (err error) {
	s, err := openScreen(in, out)
	if err != nil {
		return err
	}
	paid := w.env.owe(s.close)
	defer paid()
	defer func() {
		p := recover()
		if closeErr := s.close(); err == nil {
			err = closeErr
		}
		if p != nil {
			panic(p) // on a terminal that can show it
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	feed := w.follow(ctx)
	keys := s.keys(ctx)
	defer func() { // nothing outlives the view
		cancel()
		feed.wait()
		for range keys {
		}
	}()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	w.width, w.height = s.size()
	for {
		if err := s.draw(w.frame(time.Now())); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			w.interrupted = true
			return nil
		case <-resized:
			w.width, w.height = s.size()
			s.clear()
		case <-tick.C:
			if width, height := s.size(); width != w.width || height != w.height {
				w.width, w.height = width, height
				s.clear()
			}
		case e := <-feed.events:
			w.take(e)
		drain:
			for range 1000 { // a burst is one frame
				select {
				case e := <-feed.events:
					w.take(e)
				default:
					break drain
				}
			}
		case k := <-feed.logs:
			_ = w.lines.add(k)
		case w.link = <-feed.link:
		case note := <-feed.notes:
			w.notice = note
		case k, ok := <-keys:
			if !ok || !w.press(ctx, k, feed) {
				return nil
			}
		}
	}
}

// take brings one event into the view.
func (w *watch) take(e event.Event) {
	w.progress.apply(e)
	w.attempts(e)
	if e.Type.IsTerminal() {
		w.status, w.err, w.over = e.Status, e.Error, e.CreatedAt
	} else if !event.IsFinal(w.status) {
		w.status = event.StatusRunning
	}
	line := fmt.Sprintf("%5d  %s  %-18s %s %s", e.Seq, e.CreatedAt.Local().Format("15:04:05.000"), e.Type, e.NodeName, e.Status)
	if e.Error != "" {
		line += "  " + e.Error
	}
	w.events.add(line)
}

// farewell is what stays on the terminal.
func (w *watch) farewell() string {
	if event.IsFinal(w.status) {
		text := fmt.Sprintf("%s in %s (execution %s)", w.status, seconds(w.over.Sub(w.began)), w.id)
		if w.err != "" {
			text += "\n" + w.err
		}
		return text
	}
	return fmt.Sprintf("execution %s goes on; watch it again with: noetl watch %s", w.id, w.id)
}

// press follows a key and tells whether to stay.
func (w *watch) press(ctx context.Context, k key, f *feed) bool {
	if w.asking {
		w.asking = false
		if k == 'y' || k == 'Y' {
			w.notice = "cancelling…"
			f.cancel(ctx)
		}
		return true
	}
	w.notice = ""
	switch k {
	case 'q', 'Q', keyEscape:
		return false
	case keyInterrupt:
		w.interrupted = !event.IsFinal(w.status)
		return false
	case 'c':
		if event.IsFinal(w.status) {
			w.notice = "the execution has ended"
		} else {
			w.asking = true
		}
	case 'l':
		w.pane = toggled(w.pane, "output")
	case 'e':
		w.pane = toggled(w.pane, "events")
	case keyUp:
		w.scroll--
	case keyDown:
		w.scroll++
	case keyPageUp:
		w.scroll -= 10
	case keyPageDown:
		w.scroll += 10
	}
	return true
}

func toggled(now, pane string) string {
	if now == pane {
		return "both"
	}
	return pane
}

// isEnd tells an interruption from a failure.
func isEnd(err error) bool { return errors.Is(err, context.Canceled) }
