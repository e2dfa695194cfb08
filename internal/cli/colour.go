package cli

import "os"

// Colours of a terminal.
const (
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	grey  = "\x1b[90m"
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

// paint colours a text where colours are welcome; "" is no colour.
func (e *Env) paint(colour, text string) string {
	if !e.colours || colour == "" || text == "" {
		return text
	}
	return colour + text + plain
}

// chooseColours decides once: a flag wins, then NO_COLOR, then the terminal.
func (e *Env) chooseColours(flag string) {
	switch flag {
	case "always":
		e.colours = true
	case "never":
		e.colours = false
	default:
		e.colours = e.Terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
}
