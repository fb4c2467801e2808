// The configuration: each key, its value, and where that comes from.

import { useEffect, useState } from "../vendor/hooks.js";
import { get } from "../lib/api.js";
import { html } from "../lib/parts.js";

export function Config() {
  const [rows, setRows] = useState(null), [find, setFind] = useState(""), [all, setAll] = useState(false);
  useEffect(() => void get("/config").then((found) => setRows(found.items), () => setRows([])), []);
  if (rows === null) return html`<p class="soft">…</p>`;
  const shown = rows.filter((r) => (all || r.from !== "default") && `${r.key} ${r.value}`.toLowerCase().includes(find.toLowerCase()));
  return html`<section class="card">
    <div class="tools"><label>find <input type="search" value=${find} onInput=${(e) => setFind(e.target.value)} /></label><label><input type="checkbox" checked=${all} onChange=${() => setAll(!all)} /> also defaults</label></div>
    <div class="scroll"><table><caption class="hidden">Configuration</caption><thead><tr><th>key</th><th>value</th><th>from</th></tr></thead>
      <tbody>${shown.map((r) => html`<tr key=${r.key + r.from}><td class="mono nw">${r.key}</td><td class="mono value">${r.value}</td><td class="soft nw">${r.from}</td></tr>`)}</tbody></table></div>
  </section>`;
}
