package api

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// Replays replays logs.
type Replays interface {
	Replay(ctx context.Context, r control.ReplayRequest) (control.ReplayAnswer, error)
}

func (s *Server) replayRoutes() []route {
	return []route{
		entry(http.MethodGet, "/api/replay/state", Viewer, s.replayState,
			"folds the log of an execution, or a prefix of it, into a state with checksums",
			"?execution_id&tenant_id&organization_id&as_of_event_id|as_of_position|as_of_time&projection&limit&only&resolve_payloads&snapshot",
			`{tenant_id, organization_id, execution_id, projection, event_count, last_event_id?, last_event_type?, execution, stages, frames, commands, business_objects, loops, checksum, projection_checksums, replay_snapshot?, truncated?, next_after_event_id?, payload_resolution?, payload_resolution_summary?}`).within(Permitted),
	}
}

func (s *Server) replayState(w http.ResponseWriter, r *http.Request) error {
	req, err := replayRequest(replayQuery{queryOf(r)})
	if err != nil {
		return err
	}
	if err := s.permitExecution(r.Context(), req.ExecutionID); err != nil {
		return err
	}
	answer, err := s.opt.Plane.Replay(r.Context(), req)
	if err != nil {
		return err
	}
	return respond(w, answer)
}

// replayQuery reads parameters for a route whose clients expect 400 for
// whatever cannot be read.
type replayQuery struct{ *query }

func replayRequest(q replayQuery) (control.ReplayRequest, error) {
	req := control.ReplayRequest{
		TenantID:        q.Get("tenant_id"),
		OrganizationID:  q.Get("organization_id"),
		Projection:      q.Get("projection"),
		AsOfEventID:     q.optionalID("as_of_event_id"),
		AsOfPosition:    q.optionalID("as_of_position"),
		AsOfTime:        q.optionalTime("as_of_time"),
		Limit:           q.limit(),
		Only:            q.flag("only", false),
		ResolvePayloads: q.flag("resolve_payloads", false),
		Snapshot:        q.flag("snapshot", false),
	}
	if id := q.optionalID("execution_id"); id != nil {
		req.ExecutionID = *id
	} else if q.err == nil {
		q.err = event.Errorf(event.BadRequest, "execution_id is missing: which execution?")
	}
	if q.err != nil {
		f := failureOf(q.err)
		f.Status, f.Code = http.StatusBadRequest, string(event.BadRequest)
		return req, f
	}
	return req, nil
}

// optionalID reads an id for which 0 is not the same as nothing.
func (q replayQuery) optionalID(name string) *event.ID {
	if q.Get(name) == "" {
		return nil
	}
	id := q.id(name)
	return &id
}

// limit reads how many events to fold. Any integer will do; the range it is
// cut to does not include 0, which means nothing was asked for.
func (q replayQuery) limit() int {
	s := q.Get("limit")
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64) // cut to the nearest integer when out of range
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		q.fail("limit", "an integer")
		return 0
	}
	return int(min(max(n, 1), math.MaxInt32))
}

// replayTimes are the forms of as_of_time; one without a zone is UTC.
var replayTimes = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04",
	"2006-01-02T15:04:05.999999999Z0700", time.DateOnly,
}

// optionalTime reads a time. A plus sign that was not escaped arrives as a
// blank, so a blank before the zone is one, too.
func (q replayQuery) optionalTime(name string) *time.Time {
	s := strings.TrimSpace(q.Get(name))
	if s == "" {
		return nil
	}
	for _, text := range []string{s, strings.Replace(s, " ", "T", 1), unescapedPlus(s)} {
		for _, layout := range replayTimes {
			if t, err := time.Parse(layout, text); err == nil {
				t = t.UTC()
				return &t
			}
		}
	}
	q.fail(name, "an RFC 3339 time such as 2026-01-02T15:04:05Z")
	return nil
}

func unescapedPlus(s string) string {
	at := strings.LastIndexByte(s, ' ')
	if at < 0 {
		return s
	}
	return strings.Replace(s[:at]+"+"+s[at+1:], " ", "T", 1)
}
