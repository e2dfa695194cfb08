package api

import "maps"

// operatorMeanings are meanings of what operators send and see.
var operatorMeanings = map[string]string{
	"cron": "Five fields, or a word such as @daily.", "every": "An interval such as 90s, 10m or 1h30m.",
	"timezone": "Of the times, such as Europe/Berlin; UTC when nothing is said.",
	"overlap":  "What happens when the run before goes on: skip, queue, cancel_old or allow.", "queue_limit": "How many runs may wait.",
	"catch_up": "What becomes of ticks while no server ran.", "catch_up_limit": "How many of them run at most.", "catch_up_window": "How old they may be.",
	"jitter": "Up to how much later a run starts, so that not all start at once.", "max_failures": "Pauses the schedule after so many failures in a row.",
	"next_at": "When it runs next; null when it does not.", "last_tick": "The latest tick that was decided.", "pause_reason": "Why it is paused.",
	"ScheduleView.owner": "The playbook that declares it.", "ScheduleView.failures": "In a row.", "tick": "The time the run is for.",
	"ScheduleRunView.ticks": "How many ticks the row stands for.", "grants": "Roles, each for everything or for playbooks below a path.",
	"Grant.prefix": "A path: the role is for it and what lies below.", "TokenBody.role": "Instead of grants: one role.", "TokenBody.prefix": "What that role is for; everything when nothing is said.",
	"TokenBody.expires_in": "In so many seconds, instead of expires_at.", "NewToken.token": "The secret, shown this once.",
	"auth0_token": "The older name of token.", "cookie": "Keep the session in a cookie and do not show it.", "session_token": "The secret of the session.",
	"ActionView.actor": "Who did it.", "ActionView.target": "What it was done to.", "ActionView.outcome": "ok, refused or error.",
	"ActionsAnswer.next":     "The value of before for the next page.",
	"RetentionReport.looked": "Ended executions that were looked at.", "RetentionReport.removed": "Executions.", "RetentionReport.kept": "Executions whose time is over, by what keeps them.",
	"RetentionReport.rules": "Removed executions, by the rule that says so.", "RetentionReport.rows": "Removed rows, by table.",
	"RetentionState.pending": "What would go now.", "RetentionState.policy": "Empty keeps everything.",
	"query_base64": "The statement in base64, instead of query.", "db_schema": "The older name of schema.", "ConsoleBody.credential": "Of the database.",
	"connection_string": "Is refused: name a credential.",
}

func allMeanings() map[string]string {
	all := maps.Clone(meanings)
	maps.Copy(all, operatorMeanings)
	return all
}
