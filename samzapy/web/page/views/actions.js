// What may be done: each says before what it will do, as the interface's dry run tells it.

import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { post } from "../lib/api.js";
import { html } from "../lib/parts.js";

const WHAT = { scale: "Change the number of containers", restart: "Restart containers", stop: "Stop the job" };

function Dialog({ what, job, containers, close }) {
  const place = useRef(null), [n, setN] = useState(what === "scale" ? job.target : ""), [effect, setEffect] = useState(null), [error, setError] = useState(null), [is_busy, setBusy] = useState(false);
  const body = what === "scale" ? { containers: Number(n) } : what === "restart" ? { container: n === "" ? null : Number(n) } : {};
  const fail = (e) => setError(e);
  useEffect(() => place.current.showModal(), []);
  useEffect(() => {
    setError(null);
    setEffect(null);
    const asked = setTimeout(() => post(`/${what}`, { ...body, dry_run: true }).then((told) => setEffect(told.effect), fail), 300); // whoever types is waited for
    return () => clearTimeout(asked);
  }, [n]);
  const act = () => {
    setBusy(true);
    post(`/${what}`, body).then(close, (e) => (fail(e), setBusy(false)));
  };
  return html`<dialog ref=${place} onClose=${close} aria-label=${WHAT[what]}>
    <h2>${WHAT[what]}</h2>
    ${what === "scale" && html`<div class="row"><label>containers <input type="number" min="1" max=${job.tasks} value=${n} onInput=${(e) => setN(e.target.value)} /></label><span class="soft">now ${job.target}</span></div>`}
    ${what === "restart" && html`<div class="row"><label>which <select value=${n} onChange=${(e) => setN(e.target.value)}><option value="">all, one after the other</option>${Object.keys(containers).map((id) => html`<option value=${id}>container ${id}</option>`)}</select></label></div>`}
    <div class="effect" aria-live="polite">${error ? html`<span class="bad">${error.message}</span> ${error.remedy}` : effect || "…"}</div>
    <div class="row"><button class="main" disabled=${is_busy || !effect} onClick=${act}>${WHAT[what]}</button><button onClick=${close}>Cancel</button></div>
  </dialog>`;
}

export function Actions({ may, job, containers }) {
  const [what, setWhat] = useState("");
  if (may !== "operate") return html`<span class="soft">${may === "view" ? "view only" : ""}</span>`;
  return html`<select aria-label="Actions" value="" onChange=${(e) => (setWhat(e.target.value), (e.target.value = ""))}><option value="">Actions</option>${Object.entries(WHAT).map(([name, text]) => html`<option value=${name}>${text} …</option>`)}</select>
    ${what && html`<${Dialog} key=${what} what=${what} job=${job} containers=${containers} close=${() => setWhat("")} />`}`;
}
