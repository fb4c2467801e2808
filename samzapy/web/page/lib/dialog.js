// Asks before something is changed: says what it will do, as the interface's dry run tells it, then does it.

import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { post } from "./api.js";
import { html } from "./parts.js";

/** `path`, `body`: the request; `children`: what may be chosen; `close(done)`: called with the answer, or without one. */
export function Dialog({ title, path, body, children, close }) {
  const place = useRef(null), [told, setTold] = useState(null), [error, setError] = useState(null), [is_busy, setBusy] = useState(false);
  const given = JSON.stringify(body);
  useEffect(() => place.current.showModal(), []);
  useEffect(() => {
    let is_over = false;
    setError(null);
    setTold(null);
    const later = setTimeout(() => post(path, { ...body, dry_run: true }).then((t) => is_over || setTold(t), (e) => is_over || setError(e)), 300); // whoever types is waited for
    return () => ((is_over = true), clearTimeout(later));
  }, [given]);
  const act = () => {
    setBusy(true);
    post(path, body).then(close, (e) => (setError(e), setBusy(false)));
  };
  return html`<dialog ref=${place} onClose=${() => close()} aria-label=${title}>
    <h2>${title}</h2>
    ${children}
    <div class="effect" aria-live="polite">${error ? html`<span class="bad">${error.message}</span> ${error.remedy}` : told ? html`${told.effect}.${(told.not_sent || []).map((why) => html`<div class="soft">${why}</div>`)}` : "…"}</div>
    <div class="row"><button class="main" disabled=${is_busy || !told || told.count === 0} onClick=${act}>${is_busy ? "…" : title}</button><button onClick=${() => close()}>Cancel</button></div>
  </dialog>`;
}
