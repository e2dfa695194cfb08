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
  if (r.status === 401) signIn();
  if (!r.ok) throw new Error((await r.json()).error || r.statusText);
  return r.json();
}

// signIn asks for a token. It is exchanged for a session that lives in a cookie
// no script can read; the token itself is kept nowhere.
async function signIn() {
  if ($("signin").open) return;
  $("who").hidden = true;
  $("signin").showModal();
  $("refused").textContent = location.hash === "#sign-in-failed" ? "The sign-in failed." : "";
  const how = await fetch("/api/auth/methods").then((r) => r.json()).catch(() => ({}));
  $("oidc").hidden = !how.oidc;
}

async function sendToken(e) {
  e.preventDefault();
  const token = $("token").value.trim();
  $("token").value = "";
  try {
    const r = await fetch("/api/auth/login", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token, cookie: true }) });
    const a = await r.json();
    if (a.status !== "success") throw new Error(a.data?.message || a.error || r.statusText);
    $("signin").close();
    whoAmI();
    refresh();
  } catch (err) { $("refused").textContent = err.message; }
}

async function signOut() {
  await fetch("/api/auth/logout", { method: "POST" });
  if (stream) stream.close();
  $("list").replaceChildren();
  $("detail").replaceChildren();
  signIn();
}

// whoAmI shows the caller where there is one to show.
async function whoAmI() {
  const how = await fetch("/api/auth/methods").then((r) => r.json()).catch(() => ({}));
  if (!how.required) return;
  try {
    const me = await get("/api/auth/me");
    $("name").textContent = `${me.name || me.id} (${[...new Set(me.grants.map((g) => g.role + (g.prefix ? " of " + g.prefix : "")))].join(", ")})`;
    $("who").hidden = false;
  } catch { /* the sign-in is shown */ }
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
    $("health").textContent = $("signin").open ? "sign in to see what runs" : "the server does not answer: " + err.message;
  }
}

function choose(id) {
  chosen = id;
  history.replaceState(null, "", "#" + id);
  if (stream) stream.close();
  const steps = el("tbody"), log = el("tbody"), waits = el("div");
  $("detail").replaceChildren(waits,
    el("h2", { textContent: "Steps" }), el("table", {}, el("thead", {}, el("tr", {}, ...["Step", "Status", "Why", "Runs", "Result"].map((t) => el("th", { textContent: t })))), steps),
    el("h2", { textContent: "Log" }), el("table", {}, el("thead", {}, el("tr", {}, ...["#", "Time", "Event", "Node", "Status"].map((t) => el("th", { textContent: t })))), log));
  let due = null;
  const outline = () => { due ??= setTimeout(async () => { due = null; if (chosen === id) { showSteps(id, steps); showWaits(id, waits); } }, 150); };
  stream = new EventSource(`/api/executions/${id}/stream`);
  const show = (m) => { log.append(logRow(JSON.parse(m.data))); outline(); };
  stream.addEventListener("end", () => { stream.close(); outline(); refresh(); });
  stream.onmessage = show;
  for (const t of TYPES) stream.addEventListener(t, show);
  refresh();
}

const TYPES = ["playbook_started", "playbook.completed", "playbook.failed", "playbook.cancelled", "step.enter", "step.exit",
  "step.skipped", "step.failed", "loop.done", "next.evaluated", "ctx.updated", "command.issued", "command.claimed",
  "command.started", "command.completed", "command.failed", "command.cancelled", "command.released", "command.parked",
  "timer.set", "timer.fired", "child.issued", "frame.committed", "call.done", "call.error", "step.reused",
  "signal.received", "signal.refused",
  "rerun.prepared", "subscription.message.deduplicated"];

async function showSteps(id, body) {
  try {
    const [d, why] = await Promise.all([get(`/api/executions/${id}?include_events=false`), get(`/api/executions/${id}/explain`).catch(() => ({ steps: [] }))]);
    const explained = new Map(why.steps.map((x) => [x.step, x]));
    const names = [...new Set([...explained.keys(), ...Object.keys(d.steps || {})])];
    body.replaceChildren(...names.map((name) => stepRow(name, (d.steps || {})[name] || {}, explained.get(name) || {})));
  } catch (err) {
    body.replaceChildren(el("tr", {}, el("td", { textContent: err.message })));
  }
}

// showWaits asks for what the execution waits for. A form that somebody fills in
// stays as it is.
async function showWaits(id, box) {
  try {
    const waits = (await get(`/api/executions/${id}/waits`)).waits.filter((w) => w.for === "signal");
    const keys = waits.map((w) => w.command_id).join();
    if (box.dataset.keys === keys) return;
    box.dataset.keys = keys;
    box.replaceChildren(...waits.map((w) => waitForm(id, w)));
  } catch { /* the steps say what is wrong */ }
}

function waitForm(id, w) {
  const schema = w.form || {}, note = el("span", { className: "FAILED" });
  const fields = Object.entries(schema.properties || {}).map(([name, p]) => formField(name, p, (schema.required || []).includes(name)));
  const free = fields.length || w.form ? null : el("input", { placeholder: "JSON, or nothing" });
  const send = async (more) => {
    try {
      const data = free ? (free.value.trim() ? JSON.parse(free.value) : undefined) : Object.assign(Object.fromEntries(fields.map((f) => [f.name, f.value()]).filter(([, v]) => v !== undefined)), more);
      const r = await fetch(`/api/executions/${id}/signals/${encodeURIComponent(w.signal)}`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ data, step: w.step, index: w.index, sender: "page" }) });
      if (!r.ok) throw new Error((await r.json()).error || r.statusText);
      note.textContent = "";
    } catch (err) { note.textContent = err.message; }
  };
  const button = (text, more) => el("button", { type: "button", textContent: text, onclick: () => send(more) });
  return el("form", { onsubmit: (e) => { e.preventDefault(); send(); } },
    el("h2", { textContent: `${w.step}${w.index === undefined ? "" : ` [${w.index}]`} waits for ${w.signal}` }), w.message || "",
    ...fields.filter((f) => !(w.approval && f.name === "approved")).map((f) => el("p", {}, el("label", {}, f.title + " ", f.input))), ...(free ? [el("p", {}, free)] : []),
    ...(w.approval ? [button("Approve", { approved: true }), " ", button("Reject", { approved: false })] : [button("Send")]), " ", note);
}

function formField(name, p, required) {
  const title = (p.title || name) + (required ? " *" : "");
  if (p.enum) {
    const input = el("select", {}, ...p.enum.map((v) => el("option", { textContent: String(v), value: JSON.stringify(v), selected: v === p.default })));
    return { name, title, input, value: () => JSON.parse(input.value) };
  }
  if (p.type === "boolean") {
    const input = el("input", { type: "checkbox", checked: p.default === true });
    return { name, title, input, value: () => input.checked };
  }
  const number = p.type === "number" || p.type === "integer", other = p.type && p.type !== "string" && !number;
  const input = el("input", { type: number ? "number" : "text", step: p.type === "integer" ? "1" : "any", value: p.default ?? "", placeholder: other ? "JSON" : "" });
  return { name, title, input, value: () => (input.value === "" ? undefined : number ? Number(input.value) : other ? JSON.parse(input.value) : input.value) };
}

function stepRow(name, s, x) {
  const status = x.status || s.status;
  return el("tr", {},
    el("td", { textContent: name }),
    el("td", { className: status, textContent: (status || "").replace("_", " ") }),
    el("td", {}, ...reasons(x)),
    el("td", { textContent: s.runs ?? "" }),
    el("td", {}, s.error ? el("span", { className: "FAILED", textContent: s.error }) : s.result === undefined || s.result === null ? "" :
      el("details", {}, el("summary", { className: "mono", textContent: JSON.stringify(s.result).slice(0, 40) }), el("pre", { className: "mono", textContent: JSON.stringify(s.result, null, 2) }))));
}

// reasons are what explains a step: a sentence, and below it what it waits for
// and which arcs fired.
function reasons(x) {
  if (!x.reason || x.reason === "it completed" && !x.next) return [];
  const lines = [...(x.waits_for || []).map((w) => w.what + (w.until ? `, until ${w.until.slice(11, 19)}` : "")),
    ...[...(x.not_led_by || []), ...(x.next || [])].map(arc)];
  return lines.length ? [el("details", {}, el("summary", { textContent: x.reason }), el("pre", { textContent: lines.join("\n") }))] : [x.reason];
}

function arc(a) {
  const values = Object.entries(a.read || {}).map(([k, v]) => `, ${k} = ${JSON.stringify(v)}`).join("");
  return `${a.from} → ${a.to} ${a.fired ? "fired" : "did not fire"}${a.when ? ": " + a.when : ""}${values}`;
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

$("token-form").addEventListener("submit", sendToken);
$("signin").addEventListener("cancel", (e) => e.preventDefault());
$("out").addEventListener("click", signOut);
whoAmI();
refresh();
setInterval(() => { if (!$("signin").open) refresh(); }, 2000);
if (/^#\d+$/.test(location.hash)) choose(location.hash.slice(1));
