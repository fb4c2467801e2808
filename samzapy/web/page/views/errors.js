// Errors of records, grouped by class and place: the line that raised them, or what could not be read.

import { useEffect, useState } from "../vendor/hooks.js";
import { get } from "../lib/api.js";
import { clock, moment, number } from "../lib/format.js";
import { html } from "../lib/parts.js";
import { Letters } from "./letters.js";

export function Errors({ job, may, view, look }) {
  const [groups, setGroups] = useState(null), [open, setOpen] = useState({});
  useEffect(() => {
    let is_over = false;
    get("/errors").then((found) => is_over || setGroups(found.items), () => is_over || setGroups([]));
    return () => (is_over = true);
  }, [job.errors]);
  if (groups === null) return html`<p class="soft">…</p>`;
  return html`<section class="card"><h2>Errors of records in this run</h2>
    ${groups.length === 0 ? html`<p>None.</p>` : html`<div class="scroll"><table class="cards">
      <thead><tr><th>error</th><th>where</th><th class="n">times</th><th>first</th><th>last</th><th>tasks</th><th>last record</th><th>record was</th><th></th></tr></thead>
      <tbody>${groups.map((g) => { const key = g.type + g.place; return html`
        <tr key=${key}><td class="cut">${g.text || g.type}</td><td class="mono nw">${g.place}</td><td class="n">${number(g.count)}</td><td class="nw" title=${moment(g.first_ms)}>${clock(g.first_ms)}</td><td class="nw" title=${moment(g.last_ms)}>${clock(g.last_ms)}</td>
          <td>${g.tasks.slice(0, 4).join(", ")}${g.tasks.length > 4 ? ` and ${g.tasks.length - 4} more` : ""}</td><td class="mono nw">${g.record}</td><td class="nw">${g.action}</td>
          <td><button class="plain" aria-expanded=${!!open[key]} onClick=${() => setOpen({ ...open, [key]: !open[key] })}>stack</button></td></tr>
        ${open[key] && html`<tr key=${key + "stack"}><td colspan="9"><pre>${g.stack}</pre></td></tr>`}`; })}</tbody></table></div>`}
  </section>
  <${Letters} may=${may} set_aside=${job.set_aside} view=${view} look=${look} />`;
}
