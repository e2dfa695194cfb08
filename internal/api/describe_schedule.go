package api

import (
	"net/http"

	"github.com/noetl/noetl-go/internal/event"
)

const tagSchedules = "Schedules"

// scheduleChange is a schedule of which nothing has to be given.
type scheduleChange event.ScheduleSpec

var noSchedule = map[int]string{http.StatusNotFound: "There is no such schedule."}

var scheduleDescriptions = map[string]description{
	"GET /api/schedules": {
		id: "listSchedules", tag: tagSchedules, gives: gives[schedulesAnswer](),
		params: []parameter{textParam("path", "Only those of this playbook."), choiceParam("state", "Only those in this state.", "", "active", "paused", "ended")},
	},
	"POST /api/schedules": {
		id: "createSchedule", tag: tagSchedules, text: "A path is needed, and exactly one of cron and every, which says when. Without a name it gets that of its playbook.",
		body: takes[event.ScheduleSpec](), gives: gives[event.ScheduleView](), fails: map[int]string{http.StatusConflict: "Another schedule has this name."},
	},
	"GET /api/schedules/{ref}": {id: "getSchedule", tag: tagSchedules, gives: gives[event.ScheduleView](), fails: noSchedule},
	"PUT /api/schedules/{ref}": {
		id: "updateSchedule", tag: tagSchedules, text: "Ticks that were decided stay. A schedule that a playbook declares cannot be changed here.",
		body: takes[scheduleChange](), gives: gives[event.ScheduleView](),
		fails: map[int]string{http.StatusNotFound: "There is no such schedule.", http.StatusConflict: "Another schedule has this name, or a playbook declares it."},
	},
	"DELETE /api/schedules/{ref}": {
		id: "deleteSchedule", tag: tagSchedules, gives: gives[scheduleDeleted](),
		fails: map[int]string{http.StatusNotFound: "There is no such schedule.", http.StatusConflict: "A playbook declares it."},
	},
	"POST /api/schedules/{ref}/pause":  {id: "pauseSchedule", tag: tagSchedules, body: mayTake[pauseBody](), gives: gives[event.ScheduleView](), fails: noSchedule},
	"POST /api/schedules/{ref}/resume": {id: "resumeSchedule", tag: tagSchedules, text: "Ticks of the pause are not run; a backfill runs them.", gives: gives[event.ScheduleView](), fails: noSchedule},
	"POST /api/schedules/{ref}/run":    {id: "runSchedule", tag: tagSchedules, text: "Paused or not, and whatever else runs.", gives: gives[event.ScheduleRunView](), fails: noSchedule},
	"POST /api/schedules/{ref}/backfill": {
		id: "backfillSchedule", tag: tagSchedules, text: "Times without an offset are those of the schedule's time zone. Ticks still to come are left to the schedule.",
		body: takes[backfillBody]("from"), gives: gives[event.ScheduleView](),
		fails: map[int]string{http.StatusNotFound: "There is no such schedule.", http.StatusConflict: "A backfill goes on."},
	},
	"GET /api/schedules/{ref}/runs": {
		id: "listScheduleRuns", tag: tagSchedules, gives: gives[scheduleRunsAnswer](), fails: noSchedule,
		params: []parameter{timeParam("before", "Only ticks before this time."), numberParam("limit", "At most so many, and at most 1000.", 50, 1)},
	},
	"GET /api/schedules/{ref}/next": {
		id: "nextScheduleRuns", tag: tagSchedules, text: "As if it were not paused; its jitter is in them.", gives: gives[scheduleNextAnswer](), fails: noSchedule,
		params: []parameter{numberParam("count", "How many, at most 1000.", 5, 1)},
	},
}
