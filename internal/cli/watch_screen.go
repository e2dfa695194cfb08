package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// screen is a terminal that a view has for itself. What was on it comes back
// when it is closed.
type screen struct {
	in, out *os.File
	before  *term.State
}

const (
	alternate = "\x1b[?1049h\x1b[?25l\x1b[2J"
	restored  = "\x1b[0m\x1b[?25h\x1b[?1049l"
)

func openScreen(in, out *os.File) (*screen, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("take the terminal: %w", err)
	}
	s := &screen{in: in, out: out, before: before}
	if _, err := out.WriteString(alternate); err != nil {
		return nil, errors.Join(fmt.Errorf("take the terminal: %w", err), s.close())
	}
	return s, nil
}

// close gives the terminal back as it was.
func (s *screen) close() error {
	_, err := s.out.WriteString(restored)
	return errors.Join(err, term.Restore(int(s.in.Fd()), s.before))
}

func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		return 80, 24
	}
	return width, height
}

func (s *screen) clear() { _, _ = s.out.WriteString("\x1b[2J") }

// draw replaces what is shown, line by line, so that nothing flickers.
func (s *screen) draw(lines []string) error {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[2K" + line + "\x1b[0m")
	}
	_, err := s.out.WriteString(b.String())
	return err
}

// key is a character, or one of the keys without.
type key rune

const (
	keyInterrupt key = 3
	keyEscape    key = 27
	keyUp        key = -1
	keyDown      key = -2
	keyPageUp    key = -3
	keyPageDown  key = -4
)

// keys sends what is pressed until the context or the terminal ends. It waits
// in short spells, so that it never takes a key that is for somebody else.
func (s *screen) keys(ctx context.Context) <-chan key {
	out := make(chan key)
	go func() {
		defer close(out)
		buf := make([]byte, 64)
		for ctx.Err() == nil {
			fds := []unix.PollFd{{Fd: int32(s.in.Fd()), Events: unix.POLLIN}}
			n, err := unix.Poll(fds, 100)
			if err != nil && !errors.Is(err, unix.EINTR) {
				return
			}
			if n < 1 || err != nil {
				continue
			}
			n, err = s.in.Read(buf)
			if err != nil || n == 0 {
				return
			}
			for _, k := range decodeKeys(buf[:n]) {
				select {
				case out <- k:
				case <-ctx.Done():
					return
				}
			}
		}
	}()
	return out
}

// decodeKeys reads what a terminal sends for keys.
func decodeKeys(b []byte) []key {
	var out []key
	for text := string(b); text != ""; {
		known := false
		for seq, k := range map[string]key{
			"\x1b[A": keyUp, "\x1b[B": keyDown, "\x1bOA": keyUp, "\x1bOB": keyDown, "\x1b[5~": keyPageUp, "\x1b[6~": keyPageDown,
		} {
			if rest, ok := strings.CutPrefix(text, seq); ok {
				out, text, known = append(out, k), rest, true
				break
			}
		}
		if known {
			continue
		}
		if strings.HasPrefix(text, "\x1b") && len(text) > 1 { // a key we do not use
			return out
		}
		r, n := utf8.DecodeRuneInString(text)
		out, text = append(out, key(r)), text[n:]
	}
	return out
}
