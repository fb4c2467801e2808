// What may be done to the job.

import { useState } from "../vendor/hooks.js";
import { Dialog } from "../lib/dialog.js";
import { html } from "../lib/parts.js";

const WHAT = { scale: "Change the number of containers", restart: "Restart containers", pause: "Pause the job", resume: "Resume the job", commit: "Commit now", stop: "Stop the job" };

function Ask({ what, job, containers, close }) {
  const [n, setN] = useState(what === "scale" ? job.target : "");
  const body = what === "scale" ? { containers: Number(n) } : what === "restart" ? { container: n === "" ? null : Number(n) } : {};
  return html`<${Dialog} title=${WHAT[what]} path=${`/${what}`} body=${body} close=${close}>
    ${what === "scale" && html`<div class="row"><label>containers <input type="number" min="1" max=${job.tasks} value=${n} onInput=${(e) => setN(e.target.value)} /></label><span class="soft">now ${job.target}</span></div>`}
    ${what === "restart" && html`<div class="row"><label>which <select value=${n} onChange=${(e) => setN(e.target.value)}><option value="">all, one after the other</option>${Object.keys(containers).map((id) => html`<option value=${id}>container ${id}</option>`)}</select></label></div>`}
  <//>`;
}

export function Actions({ may, job, containers }) {
  const [what, setWhat] = useState("");
  const is_there = (name) => (name === "pause" ? !job.paused : name === "resume" ? !!job.paused : true);
  if (may !== "operate") return html`<span class="soft">${may === "view" ? "view only" : ""}</span>`;
  return html`<select aria-label="Actions" value="" onChange=${(e) => (setWhat(e.target.value), (e.target.value = ""))}><option value="">Actions</option>${Object.entries(WHAT).filter(([name]) => is_there(name)).map(([name, text]) => html`<option value=${name}>${text} …</option>`)}</select>
    ${what && html`<${Ask} key=${what} what=${what} job=${job} containers=${containers} close=${() => setWhat("")} />`}`;
}
