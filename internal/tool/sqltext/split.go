package sqltext

import "strings"

// Statement is one statement of a text of several.
type Statement struct {
	Text  string // without the semicolon and the space around it; comments stay
	Line  int    // of its first word in the whole text, from 1
	Start int    // the line on which Text begins: comments may come before the first word
}

// Split takes a text apart at the semicolons that end a statement. Those in
// quotes, comments and brackets do not, nor those in the body of a function
// written as BEGIN ATOMIC … END. What holds nothing but comments is dropped.
func Split(text string) []Statement {
	var out []Statement
	var one splitter
	begin := 0
	line, beginLine := 1, 1
	finish := func(end int) {
		if one.any {
			body := text[begin:end]
			trimmed := strings.TrimLeft(body, " \t\r\n\f\v")
			out = append(out, Statement{
				Text:  strings.TrimRight(trimmed, " \t\r\n\f\v"),
				Line:  one.line,
				Start: beginLine + strings.Count(body[:len(body)-len(trimmed)], "\n"),
			})
		}
		one = splitter{}
	}
	for i := 0; i < len(text); {
		end, what := scan(text, i)
		piece := text[i:end]
		if what == symbol && piece == ";" && !one.inside() {
			finish(i)
			begin, beginLine = end, line
		} else {
			one.take(piece, what, line)
		}
		line += strings.Count(piece, "\n")
		i = end
	}
	finish(len(text))
	return out
}

// splitter follows one statement.
type splitter struct {
	any    bool // something other than space and comments was seen
	line   int  // where
	words  int
	create bool // begins with CREATE
	body   bool // … FUNCTION or PROCEDURE
	last   string
	blocks int // open BEGIN ATOMIC and CASE
	parens int
}

// inside tells whether a semicolon belongs to the statement.
func (s *splitter) inside() bool { return s.blocks > 0 || s.parens > 0 }

func (s *splitter) take(piece string, what class, line int) {
	if what == space || what == comment {
		return
	}
	if !s.any {
		s.any, s.line = true, line
	}
	switch {
	case what == word:
		s.word(strings.ToUpper(piece))
		return
	case what == symbol && piece == "(":
		s.parens++
	case what == symbol && piece == ")" && s.parens > 0:
		s.parens--
	}
	s.last = ""
}

func (s *splitter) word(w string) {
	s.words++
	switch {
	case s.words == 1:
		s.create = w == "CREATE"
	case s.words <= 4 && s.create && (w == "FUNCTION" || w == "PROCEDURE"):
		s.body = true
	case !s.body:
	case w == "ATOMIC" && s.last == "BEGIN" && s.blocks == 0:
		s.blocks = 1
	case w == "CASE" && s.blocks > 0:
		s.blocks++
	case w == "END" && s.blocks > 0:
		s.blocks--
	}
	s.last = w
}

// Words are the first words of a statement in capitals, at most n, up to the
// first thing that is not a word. Comments before and between them do not count.
func Words(stmt string, n int) []string {
	var out []string
	for i := 0; i < len(stmt) && len(out) < n; {
		end, what := scan(stmt, i)
		switch {
		case what == word:
			out = append(out, strings.ToUpper(stmt[i:end]))
		case what == space || what == comment:
		case what == symbol && len(out) == 0 && stmt[i] == '(': // (SELECT …) UNION …
		default:
			return out
		}
		i = end
	}
	return out
}

// HasWords tells whether a statement holds these words (in capitals) one after
// the other, outside of quotes and comments.
func HasWords(stmt string, words ...string) bool {
	at := 0
	for i := 0; i < len(stmt); {
		end, what := scan(stmt, i)
		switch {
		case what == space || what == comment:
		case what == word && strings.EqualFold(stmt[i:end], words[at]):
			if at++; at == len(words) {
				return true
			}
		case what == word && strings.EqualFold(stmt[i:end], words[0]):
			at = 1
		default:
			at = 0
		}
		i = end
	}
	return false
}
