// The built-in page: a live list of executions, and the steps and log of one.
"use strict";
const $ = (id) => document.getElementById(id);
const el = (tag, props = {}, ...children) => {
  const e = Object.assign(document.createElement(tag), props);
  e.append(...children);
  return e;
};
const took = (s) => (s == null ? "" : s < 1 ? `${Math.round(s * 1000)} ms` : `${s.toFixed(2)} s`);
let chosen = null, stream = null;

async function get(path) {
  const r = await fetch(path);
  if (!r.ok) throw new Error((await r.json()).error || r.statusText);
  return r.json();
}

async function refresh() {
  try {
    const [health, rows] = await Promise.all([get("/api/health"), get("/api/executions?limit=100")]);
    $("health").textContent = `${health.version} · database ${health.database} · NATS ${health.nats}`;
    $("none").hidden = rows.length > 0;
    $("list").replaceChildren(...rows.map((r) => {
      const id = r.execution_id_str;
      const tr = el("tr", { onclick: () => choose(id) },
        el("td", {}, r.path, el("br"), el("code", { textContent: id })),
        el("td", { className: r.status, textContent: r.status }),
        el("td", { className: "num", textContent: took(r.duration_seconds) }));
      tr.setAttribute("aria-selected", String(id === chosen));
      return tr;
    }));
  } catch (err) {
    $("health").textContent = "the server does not answer: " + err.message;
  }
}

function choose(id) {
  chosen = id;
  if (stream) stream.close();
  const steps = el("tbody"), log = el("tbody");
  $("detail").replaceChildren(
    el("h2", { textContent: "Steps" }), el("table", {}, el("thead", {}, el("tr", {}, ...["Step", "Status", "Runs", "Result"].map((t) => el("th", { textContent: t })))), steps),
    el("h2", { textContent: "Log" }), el("table", {}, el("thead", {}, el("tr", {}, ...["#", "Time", "Event", "Node", "Status"].map((t) => el("th", { textContent: t })))), log));
  let due = null;
  const outline = () => { due ??= setTimeout(async () => { due = null; if (chosen === id) showSteps(id, steps); }, 150); };
  stream = new EventSource(`/api/executions/${id}/stream`);
  const show = (m) => { log.append(logRow(JSON.parse(m.data))); outline(); };
  stream.addEventListener("end", () => { stream.close(); outline(); refresh(); });
  stream.onmessage = show;
  for (const t of TYPES) stream.addEventListener(t, show);
  refresh();
}

const TYPES = ["playbook_started", "playbook.completed", "playbook.failed", "playbook.cancelled", "step.enter", "step.exit",
  "step.skipped", "step.failed", "loop.done", "next.evaluated", "ctx.updated", "command.issued", "command.claimed",
  "command.started", "command.completed", "command.failed", "command.cancelled", "command.released", "call.done", "call.error"];

async function showSteps(id, body) {
  try {
    const d = await get(`/api/executions/${id}?include_events=false`);
    body.replaceChildren(...Object.entries(d.steps || {}).map(([name, s]) => el("tr", {},
      el("td", { textContent: name }), el("td", { className: s.status, textContent: s.status }), el("td", { textContent: s.runs }),
      el("td", {}, s.error ? el("span", { className: "FAILED", textContent: s.error }) : s.result === undefined || s.result === null ? "" :
        el("details", {}, el("summary", { className: "mono", textContent: JSON.stringify(s.result).slice(0, 60) }), el("pre", { className: "mono", textContent: JSON.stringify(s.result, null, 2) }))))));
  } catch (err) {
    body.replaceChildren(el("tr", {}, el("td", { textContent: err.message })));
  }
}

function logRow(e) {
  const payload = { context: e.context, result: e.result, meta: e.meta };
  return el("tr", {},
    el("td", { className: "mono", textContent: e.seq }),
    el("td", { className: "mono", textContent: e.created_at.slice(11, 23) }),
    el("td", {}, el("details", {}, el("summary", { textContent: e.event_type }), el("pre", { className: "mono", textContent: JSON.stringify(payload, null, 2) }))),
    el("td", { textContent: e.node_name || "" }),
    el("td", { className: e.status, textContent: e.status }));
}

refresh();
setInterval(refresh, 2000);
