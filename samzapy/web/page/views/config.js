// The configuration: each key, its value, and where that comes from; what differs from another run's, or from the job file as it is now.

import { useEffect, useState } from "../vendor/hooks.js";
import { once } from "../lib/api.js";
import { when } from "../lib/format.js";
import { html } from "../lib/parts.js";
import { Changes } from "./runs.js";

function Compared({ run_id, against }) {
  const [found, setFound] = useState(null), [error, setError] = useState(null);
  useEffect(() => (setFound(null), setError(null), once(`/runs/${run_id}?against=${encodeURIComponent(against)}`, setFound, setError)), [run_id, against]);
  if (error) return html`<p class="bad">${error.message}</p>`;
  if (!found) return html`<p class="soft">…</p>`;
  if (found.problem) return html`<p class="warn">${found.problem}</p>`;
  if (!found.changes.length) return html`<p>The two configurations are the same.</p>`;
  return html`<${Changes} rows=${found.changes} />${against === "file" && html`<p class="soft">“was” is the value in this run, “is” the value in the job file now, which takes effect at the next <code>samzapy run</code>.</p>`}`;
}

export function Config({ view, look, run_id }) {
  const [rows, setRows] = useState(null), [runs, setRuns] = useState([]), [all, setAll] = useState(false), [error, setError] = useState(null);
  useEffect(() => once("/config", (found) => (setRows(found.items), setError(null)), setError), [run_id]);
  useEffect(() => once("/runs", (found) => setRuns(found.items), () => setRuns([])), [run_id]);
  if (error) return html`<section class="card"><p class="bad">${error.message} ${error.remedy}</p></section>`;
  if (rows === null) return html`<p class="soft">…</p>`;
  const find = view.find || "", shown = rows.filter((r) => (all || r.from !== "default") && `${r.key} ${r.value}`.toLowerCase().includes(find.toLowerCase()));
  const others = runs.filter((r) => r.run_id !== run_id);
  return html`<section class="card">
    <div class="tools"><label>find <input type="search" value=${find} onInput=${(e) => look({ find: e.target.value })} /></label><label><input type="checkbox" checked=${all} onChange=${() => setAll(!all)} /> also defaults</label>
      <label>compare with <select value=${view.against || ""} onChange=${(e) => look({ against: e.target.value })}><option value="">nothing</option><option value="file">the job file now</option>
        ${others.map((r, i) => html`<option value=${r.run_id}>${i ? "" : "the run before, "}${when(r.began_ms)}</option>`)}</select></label></div>
    ${view.against ? html`<${Compared} run_id=${run_id} against=${view.against} />` : html`<div class="scroll"><table class="cards"><caption class="hidden">Configuration</caption><thead><tr><th>key</th><th>value</th><th>from</th></tr></thead>
      <tbody>${shown.map((r) => html`<tr key=${r.key + r.from}><td class="mono nw">${r.key}</td><td class="mono value">${r.value}</td><td class="soft nw">${r.from}</td></tr>`)}</tbody></table></div>`}
  </section>`;
}
