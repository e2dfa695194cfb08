package event

import "time"

// LogChunk is a piece of what a command's tools print while it runs. Secrets
// were taken out before it was made.
type LogChunk struct {
	Seq         uint64    `json:"seq,omitempty"` // position in the stream of the bus; set by it
	ExecutionID ID        `json:"execution_id"`
	EventID     ID        `json:"event_id"` // of the command.issued
	CommandID   string    `json:"command_id"`
	Step        string    `json:"step"`
	Attempt     int       `json:"attempt,omitempty"`
	Time        time.Time `json:"time"`
	Text        string    `json:"text,omitempty"`
	Dropped     int64     `json:"dropped,omitempty"` // bytes left out before Text because nobody could take them in time
	End         bool      `json:"end,omitempty"`     // the command has ended; nothing follows
}

// LogSummary is what an event says of the output of its command.
type LogSummary struct {
	Ref   string `json:"ref,omitempty"` // where the text is kept; empty when Tail is all of it
	Bytes int64  `json:"bytes"`
	Lines int64  `json:"lines"`
	Tail  string `json:"tail"`
}
