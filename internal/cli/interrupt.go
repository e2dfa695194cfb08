package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Process runs the program as the shell started it and returns its exit code.
func Process(args []string) int {
	env := &Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		env.Terminal = true
		env.Width, _, _ = term.GetSize(fd)
	}
	ctx, stop := env.heed(context.Background())
	defer stop()
	return Main(ctx, args, env)
}

// debts are what a process has to do before it may end at once.
type debts struct {
	mu    sync.Mutex // guards all below
	owed  []*func() error
	hurry func() // ends a drain; nil when none goes on
}

// sameRequest is how close signals are that one request makes: a terminal and
// the program that started this one may both pass on the same ^C.
const sameRequest = 200 * time.Millisecond

// heed ends the context with the first interruption. The next one makes the
// command hurry, if it can, and the one after that, or this one if it cannot,
// ends the process at once: whatever hangs, ^C works.
func (e *Env) heed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var group sync.WaitGroup
	ended := make(chan struct{})
	group.Go(func() {
		var last time.Time
		for {
			select {
			case <-ended:
				return
			case <-signals:
			}
			now := time.Now()
			switch {
			case last.IsZero():
				cancel()
			case now.Sub(last) < sameRequest:
				continue
			case !e.hurried():
				e.settle()
				os.Exit(ExitInterrupted)
			}
			last = now
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(ended)
		group.Wait()
		cancel()
	}
}

// owe notes what has to be done even if the process ends at once, such as giving
// the terminal back. The caller does it itself and then calls paid.
func (e *Env) owe(debt func() error) (paid func()) {
	e.debts.mu.Lock()
	defer e.debts.mu.Unlock()
	e.debts.owed = append(e.debts.owed, &debt)
	return func() {
		e.debts.mu.Lock()
		defer e.debts.mu.Unlock()
		e.debts.owed = slices.DeleteFunc(e.debts.owed, func(d *func() error) bool { return d == &debt })
	}
}

// settle does all that is owed, the latest first.
func (e *Env) settle() {
	e.debts.mu.Lock()
	defer e.debts.mu.Unlock()
	for _, debt := range slices.Backward(e.debts.owed) {
		_ = (*debt)()
	}
}

// onHurry is what the second interruption does, once, instead of ending the
// process.
func (e *Env) onHurry(do func()) {
	e.debts.mu.Lock()
	defer e.debts.mu.Unlock()
	e.debts.hurry = do
}

func (e *Env) hurried() bool {
	e.debts.mu.Lock()
	do := e.debts.hurry
	e.debts.hurry = nil
	e.debts.mu.Unlock()
	if do == nil {
		return false
	}
	do()
	return true
}

// wasInterrupted tells that a command did not get on because somebody stopped it.
func wasInterrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}
