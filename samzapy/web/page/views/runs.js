// The last runs: how each began and ended, who ended it, what it did and what its configuration changed.

import { useEffect, useState } from "../vendor/hooks.js";
import { every, get, once } from "../lib/api.js";
import { brief, moment, number, seconds, when } from "../lib/format.js";
import { now } from "../lib/now.js";
import { State, html } from "../lib/parts.js";
import { EventList } from "./timeline.js";

export const Changes = ({ rows }) => html`<div class="scroll"><table class="cards"><caption class="hidden">What changed</caption><thead><tr><th>key</th><th>was</th><th>is</th></tr></thead>
  <tbody>${rows.map((r) => html`<tr key=${r.key}><td class="mono nw">${r.key}</td><td class="mono value">${r.before ?? "–"}<div class="soft">${r.before_from}</div></td><td class="mono value">${r.now ?? "–"}<div class="soft">${r.now_from}</div></td></tr>`)}</tbody></table></div>`;

function Run({ id }) {
  const [run, setRun] = useState(null), [error, setError] = useState(null);
  useEffect(() => once(`/runs/${encodeURIComponent(id)}`, setRun, setError), [id]);
  if (error) return html`<p class="bad">${error.message}</p>`;
  if (!run) return html`<p class="soft">…</p>`;
  return html`<div>
    ${run.error && html`<p class="bad">${run.error}<br />${run.remedy}</p>`}
    <dl class="facts"><dt>process</dt><dd>${run.pid} on ${run.host}, samzapy ${run.version}</dd><dt>started</dt><dd class="mono">${run.how}</dd>
      <dt>records</dt><dd>${["processed", "sent", "set aside", "skipped"].map((word) => `${number(run.counts[word.replace("set aside", "dead_letters")])} ${word}`).join(", ")}${run.counts.too_late ? `, ${number(run.counts.too_late)} too late for a window` : ""}; ${number(run.counts.commits)} commits</dd></dl>
    <h2>Configuration, compared with the run before</h2>
    ${run.problem ? html`<p class="soft">${run.problem}</p>` : run.changes.length ? html`<${Changes} rows=${run.changes} />` : html`<p class="soft">the same</p>`}
    ${run.errors.length > 0 && html`<h2>Errors of records</h2><ul>${run.errors.map((e) => html`<li><span class="mono">${e.place}</span> ${number(e.count)} × ${e.text || e.type}</li>`)}</ul>`}
    <h2>Events</h2><${EventList} events=${run.events.slice(-100).reverse()} /></div>`;
}

export function Runs({ view, look, job }) {
  const { run_id } = job;
  const [runs, setRuns] = useState(null), [error, setError] = useState(null);
  useEffect(() => {
    let is_over = false;
    const ask = () => get("/runs").then((found) => is_over || (setRuns(found.items), setError(null)), (e) => is_over || setError(e));
    const end = every(10000, ask);
    return () => ((is_over = true), end());
  }, [run_id]);
  if (error && !runs) return html`<section class="card"><h2>Runs</h2><p class="bad">${error.message} ${error.remedy}</p></section>`;
  if (!runs) return html`<p class="soft">…</p>`;
  return html`<section class="card"><h2>The last runs</h2><div class="scroll"><table class="cards"><caption class="hidden">Runs, the newest first</caption>
    <thead><tr><th>began</th><th>started by</th><th>outcome</th><th>ended by</th><th class="n">ran for</th><th class="n">processed</th><th class="n">restarts</th><th class="n" title="keys of the configuration that differ from the run before">keys changed</th><th></th></tr></thead>
    <tbody>${runs.map((r) => html`<tr key=${r.run_id}><td class="nw" title=${moment(r.began_ms)}>${when(r.began_ms)}</td><td class="nw">${r.started_by}</td>
      <td class="nw">${r.outcome ? html`<${State} of=${r.outcome} /> <span title=${moment(r.ended_ms)}>${when(r.ended_ms)}</span>` : html`<${State} of=${r.run_id === run_id ? job.state : "RUNNING"} />`}</td><td class="cut">${r.ended_by || (r.outcome ? "" : "–")}${r.error && html`<div class="bad">${brief(r.error)}</div>`}</td>
      <td class="n">${seconds(((r.ended_ms || now()) - r.began_ms) / 1000)}</td><td class="n">${number(r.counts.processed)}</td><td class="n">${number(r.counts.restarts)}</td><td class="n">${r.changes ?? "–"}</td>
      <td><button class="plain" aria-expanded=${view.open === r.run_id} onClick=${() => look({ open: view.open === r.run_id ? "" : r.run_id })}>show</button></td></tr>
      ${view.open === r.run_id && html`<tr key=${r.run_id + "open"}><td colspan="9"><${Run} id=${r.run_id} /></td></tr>`}`)}</tbody></table></div></section>`;
}
