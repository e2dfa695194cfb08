package replay

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// Record is one row of a log as the fold reads it: the columns any producer
// may have filled. Null and empty columns are absent.
type Record struct {
	Position      int64           `json:"seq"` // 1, 2, 3 … within the log; 0 when the log has no such count
	EventID       event.ID        `json:"event_id"`
	Type          event.Type      `json:"event_type"`
	NodeName      string          `json:"node_name"`
	Status        string          `json:"status"`
	StageID       Text            `json:"stage_id"`
	FrameID       Text            `json:"frame_id"`
	CommandID     Text            `json:"command_id"`
	WorkerID      string          `json:"worker_id"`
	AggregateType string          `json:"aggregate_type"`
	AggregateID   string          `json:"aggregate_id"`
	Meta          json.RawMessage `json:"meta"`
	Result        json.RawMessage `json:"result"`
	PayloadRef    json.RawMessage `json:"payload_ref"`
}

// Text is an id that logs hold as text or as a number.
type Text string

// UnmarshalJSON accepts "a", 7 and null.
func (t *Text) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); string(b) == "null" {
		*t = ""
		return nil
	}
	*t = Text(textOf(b))
	return nil
}

// identity says which rows of the state an event touches, and as what.
type identity struct {
	stage, frame, command, loop string
	ofStage, ofFrame            string // what a frame or a command belongs to
	stageType, frameType        event.Type
	loopType                    event.Type
	object                      objectKey
}

type objectKey struct{ typ, id string }

func (k objectKey) String() string { return k.typ + "/" + k.id }

// identify finds out what a record is about by its columns, its aggregate and
// its meta.
func (r *Record) identify(meta object) identity {
	id := identity{
		stage:     cmp.Or(string(r.StageID), r.aggregate("stage"), meta.text("stage_id")),
		frame:     cmp.Or(string(r.FrameID), r.aggregate("frame"), meta.text("frame_id")),
		command:   cmp.Or(string(r.CommandID), meta.text("command_id")),
		loop:      meta.firstText("loop_id", "loop_event_id", "__loop_epoch_id"),
		stageType: r.Type, frameType: r.Type, loopType: r.Type,
		object: r.objectKey(meta),
	}
	id.ofStage, id.ofFrame = id.stage, id.frame
	return id
}

// aggregate is the aggregate's id when the aggregate is of the kind asked for.
func (r *Record) aggregate(kind string) string {
	if r.AggregateType != kind {
		return ""
	}
	return strings.TrimPrefix(r.AggregateID, kind+"/")
}

func (r *Record) objectKey(meta object) objectKey {
	o := meta.object("business_object")
	k := objectKey{
		typ: cmp.Or(o.firstText("object_type", "type"), meta.firstText("business_object_type", "object_type")),
		id:  cmp.Or(o.firstText("object_id", "id"), meta.firstText("business_object_id", "object_id")),
	}
	if r.AggregateType == "business_object" && r.AggregateID != "" {
		rest := strings.TrimPrefix(r.AggregateID, "business_object/")
		parts := slices.DeleteFunc(strings.Split(rest, "/"), func(p string) bool { return p == "" })
		if len(parts) >= 2 {
			k.typ, k.id = cmp.Or(k.typ, parts[0]), cmp.Or(k.id, strings.Join(parts[1:], "/"))
		} else {
			k.typ, k.id = cmp.Or(k.typ, "business_object"), cmp.Or(k.id, r.AggregateID)
		}
	}
	if k.typ == "" || k.id == "" {
		return objectKey{}
	}
	return k
}

// sorted is the records in the order of the log: by position when all have
// one, otherwise by event id. Records with the same id come in an order that
// depends on what they say alone.
func sorted(records []Record) []*Record {
	list := make([]*Record, len(records))
	counted := true
	for i := range records {
		list[i] = &records[i]
		counted = counted && records[i].Position > 0
	}
	slices.SortStableFunc(list, func(a, b *Record) int {
		byPosition := 0
		if counted {
			byPosition = cmp.Compare(a.Position, b.Position)
		}
		return cmp.Or(byPosition, cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.NodeName, b.NodeName), cmp.Compare(a.Status, b.Status),
			bytes.Compare(a.Meta, b.Meta), bytes.Compare(a.Result, b.Result))
	})
	return list
}
