package control

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/store"
)

// What can be wrong.
const (
	DifferentGap          = "log_gap"
	DifferentForeign      = "foreign_event"
	DifferentStart        = "start"
	DifferentTerminal     = "second_end"
	DifferentEventID      = "event_id"
	DifferentContent      = "event_content"
	DifferentPlaybook     = "playbook"
	DifferentNoRow        = "execution_row_missing"
	DifferentRow          = "execution_row"
	DifferentNoCommand    = "command_row_missing"
	DifferentCommand      = "command_row"
	DifferentExtraCommand = "command_row_extra"
	DifferentStrayCommand = "command_without_log"
	DifferentNoLog        = "row_without_log"
	DifferentReference    = "reference"
	DifferentChild        = "child"
	DifferentReplay       = "replay"
)

// Difference is one place where what is stored is not what it should be.
type Difference struct {
	ExecutionID event.StringID `json:"execution_id"`
	Seq         int64          `json:"seq,omitempty"` // of the event concerned; 0 when it is about no single one
	What        string         `json:"what"`
	Where       string         `json:"where,omitempty"`
	Want        string         `json:"want"`
	Got         string         `json:"got"`
	Repairable  bool           `json:"repairable"` // writing the rows anew from the log mends it
}

// String says it in a sentence.
func (d Difference) String() string {
	text := "execution " + event.ID(d.ExecutionID).String()
	if d.Seq > 0 {
		text += ", event " + strconv.FormatInt(d.Seq, 10)
	}
	if d.Where != "" {
		text += ", " + d.Where
	}
	return text + ": want " + d.Want + ", got " + d.Got + " (" + d.What + ")"
}

// aboutCommand tells whether the rows of commands are concerned.
func (d Difference) aboutCommand() bool {
	return d.What == DifferentNoCommand || d.What == DifferentCommand || d.What == DifferentExtraCommand
}

func noLog(id event.ID) Difference {
	return Difference{
		ExecutionID: event.StringID(id), What: DifferentNoLog, Where: "execution row",
		Want: "no row, because the log has no such execution", Got: "a row",
	}
}

// compare holds the rows against the fold.
func (a *audit) compare() []Difference {
	want := executionRow(a.state.Summary())
	var found []Difference
	differ := func(seq int64, what, where, want, got string) {
		found = append(found, Difference{
			ExecutionID: event.StringID(a.id), Seq: seq, What: what, Where: where, Want: want, Got: got, Repairable: true,
		})
	}
	if a.row == nil {
		differ(a.events, DifferentNoRow, "execution row", want.Status, "none")
	} else {
		for _, f := range fieldsThatDiffer(want, *a.row) {
			differ(a.events, DifferentRow, "execution."+f.name, f.want, f.got)
		}
	}
	present := make(map[event.ID]*store.Command, len(a.present))
	for i := range a.present {
		present[a.present[i].EventID] = &a.present[i]
	}
	for _, id := range a.order {
		c := a.commands[id]
		got := present[id]
		delete(present, id)
		switch {
		case got == nil && a.state.Final() && event.IsFinal(c.row.Status):
			a.purged++ // ended commands of ended executions are cleaned away in time
		case got == nil:
			differ(c.seq, DifferentNoCommand, "command "+c.row.CommandID, c.row.Status, "no row")
		default:
			for _, f := range commandFields(c.row, *got) {
				differ(c.seq, DifferentCommand, "command "+c.row.CommandID+", command."+f.name, f.want, f.got)
			}
		}
	}
	for i := range a.present {
		if row := &a.present[i]; present[row.EventID] != nil {
			differ(0, DifferentExtraCommand, "command "+row.CommandID, "no row", row.Status)
		}
	}
	return found
}

// replayDifferences holds the rows against the state that clients get when
// they replay the log. It is a fold of its own, so each checks the other.
func (a *audit) replayDifferences() []Difference {
	live := replay.Live{Status: a.row.Status, LastEventID: a.row.LastEventID, Events: a.row.LastSeq}
	for i := range a.present {
		row := &a.present[i]
		c := replay.LiveCommand{CommandID: row.CommandID, Status: row.Status, WorkerID: row.WorkerID}
		if a.disputed[row.CommandID] {
			c.Status, c.WorkerID = event.StatusWaiting, "nobody" // which contradicts nothing
		}
		live.Commands = append(live.Commands, c)
	}
	var found []Difference
	for _, text := range replay.Differences(a.replayed.State(), live) {
		found = append(found, Difference{
			ExecutionID: event.StringID(a.id), Seq: a.events, What: DifferentReplay,
			Want: "a replay that agrees with the rows", Got: text,
		})
	}
	return found
}

func (a *audit) playbookDifference(problem string) []Difference {
	if problem == "" {
		return nil
	}
	sum := a.state.Summary()
	return []Difference{{
		ExecutionID: event.StringID(a.id), Seq: 1, What: DifferentPlaybook,
		Where: fmt.Sprintf("playbook %s version %d (catalog id %s)", sum.Path, sum.Version, sum.CatalogID),
		Want:  "a playbook that can be run", Got: problem,
	}}
}

type differingField struct{ name, want, got string }

// commandFields compares command rows. The log knows who holds a command, not
// until when.
func commandFields(want, got store.Command) []differingField {
	lease := got.LeaseUntil
	want.LeaseUntil, got.LeaseUntil = time.Time{}, time.Time{}
	found := fieldsThatDiffer(want, got)
	if held(want.Status) == lease.IsZero() {
		yes, no := "a lease", "none"
		if !held(want.Status) {
			yes, no = no, shown(lease)
		}
		found = append(found, differingField{"LeaseUntil", yes, no})
	}
	return found
}

// fieldsThatDiffer compares two rows of a kind field by field.
func fieldsThatDiffer[T any](want, got T) []differingField {
	var found []differingField
	w, g := reflect.ValueOf(want), reflect.ValueOf(got)
	for i := range w.NumField() {
		a, b := w.Field(i).Interface(), g.Field(i).Interface()
		if at, ok := a.(time.Time); ok && at.Equal(b.(time.Time)) || !ok && a == b {
			continue
		}
		found = append(found, differingField{w.Type().Field(i).Name, shown(a), shown(b)})
	}
	return found
}

func shown(v any) string {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return "no time"
		}
		return v.UTC().Format(time.RFC3339Nano)
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}
