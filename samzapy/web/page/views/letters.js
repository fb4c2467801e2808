// Dead letters: the newest, found and chosen, one with its record, sent back or discarded.

import { useEffect, useState } from "../vendor/hooks.js";
import { get, once } from "../lib/api.js";
import { Dialog } from "../lib/dialog.js";
import { brief, moment, number, when } from "../lib/format.js";
import { Command, Copy, html } from "../lib/parts.js";

const PAGE = 50;
const WHAT = { replay: "Send back", discard: "Discard" };
const dealt = (l) => (l.discarded_ms ? `discarded ${when(l.discarded_ms)}` : l.replayed_ms ? `sent back ${when(l.replayed_ms)}` : "");

/** A key, a value: text as it is, with what is wrong with it. */
export const Shown = ({ of }) => html`${of.text == null ? html`<span class="soft">none</span>` : html`<pre class="shown">${of.text}</pre>`}
  ${of.is_cut && html`<div class="soft">the beginning of ${number(of.bytes)} bytes</div>`}${of.problem && html`<div class="warn">${of.problem}</div>`}`;

function Letter({ which }) {
  const [one, setOne] = useState(null), [error, setError] = useState(null);
  useEffect(() => once(`/dead-letters/${encodeURIComponent(which)}`, setOne, setError), [which]);
  if (error) return html`<p class="bad">${error.message}</p>`;
  if (!one) return html`<p class="soft">…</p>`;
  const line = `samzapy dlq show JOB.yaml ${one.number}`;
  return html`<dl class="facts">
    <dt>key</dt><dd><${Shown} of=${one.key} /></dd><dt>value</dt><dd><${Shown} of=${one.value} /></dd>
    <dt>record</dt><dd class="mono">${one.origin} <span class="soft">${moment(one.timestamp_ms)}</span></dd>
    <dt>headers</dt><dd>${one.headers.length ? one.headers.map(([name, text]) => html`<div class="mono">${name}: ${text ?? "–"}</div>`) : html`<span class="soft">none</span>`}</dd>
    <dt>attempts</dt><dd>${one.attempts}, by ${one.task}</dd>
    <dt>stack</dt><dd><pre>${one.stack}</pre></dd>
    ${one.shortened && html`<dt>shortened</dt><dd>${one.shortened}. These were its sizes in bytes. The whole record is only at ${one.origin}, as long as its topic keeps it.</dd>`}
    <dt>in a terminal</dt><dd><${Command} text=${line} /> <${Copy} text=${line} /></dd></dl>`;
}

export function Letters({ may, set_aside, view, look }) {
  const [found, setFound] = useState(null), [error, setError] = useState(null), [chosen, setChosen] = useState([]), [doing, setDoing] = useState(""), [done, setDone] = useState(""), [again, setAgain] = useState(0);
  const offset = Number(view.offset || 0), query = new URLSearchParams({ limit: PAGE, offset, find: view.find || "", error: view.error || "", state: view.state || "waiting" });
  useEffect(() => {
    let is_over = false;
    const later = setTimeout(() => get(`/dead-letters?${query}`).then((f) => is_over || (setFound(f), setError(null)), (e) => is_over || setError(e)), view.find ? 250 : 0);
    return () => ((is_over = true), clearTimeout(later));
  }, [String(query), set_aside, again]);
  const close = (told) => {
    setDoing("");
    if (told) (setDone(told.effect), setChosen([]), setAgain(again + 1));
  };
  if (error && !found) return html`<section class="card"><h2>Dead letters</h2><p class="bad">${error.message} ${error.remedy}</p></section>`;
  if (!found) return html`<section class="card"><h2>Dead letters</h2><p class="soft">…</p></section>`;
  const choose = (number_) => setChosen(chosen.includes(number_) ? chosen.filter((n) => n !== number_) : [...chosen, number_]);
  const waiting = found.items.filter((l) => !l.replayed_ms && !l.discarded_ms).map((l) => l.number), all = waiting.length > 0 && waiting.every((n) => chosen.includes(n));
  const is_empty = found.all === 0;
  return html`<section class="card"><h2>Dead letters${is_empty ? "" : `: ${number(found.waiting)} of ${number(found.all)} wait`}</h2>
    ${is_empty ? html`<p>${found.is_whole ? "None." : html`None among the newest records of ${found.topic}; <code>samzapy dlq list JOB.yaml</code> looks at all.`} ${found.strangers ? `${number(found.strangers)} ${found.strangers === 1 ? "record" : "records"} in ${found.topic} came from elsewhere and cannot be read as dead letters.` : ""}</p>` : html`
    <div class="groups">${found.groups.map((g) => html`<button key=${g.error} class=${`plain group ${view.error === g.error ? "is-on" : ""}`} aria-pressed=${view.error === g.error} onClick=${() => look({ error: view.error === g.error ? "" : g.error, offset: 0 })}><b>${g.error}</b> ${number(g.count)} <span class="soft">${g.waiting !== g.count ? `${number(g.waiting)} wait, ` : ""}last ${when(g.last_ms)}</span></button>`)}</div>
    <div class="tools"><label>find <input type="search" maxlength="200" value=${view.find || ""} placeholder="in key, value, error, record" onInput=${(e) => look({ find: e.target.value, offset: 0 })} /></label>
      <label><input type="checkbox" checked=${view.state === "all"} onChange=${() => look({ state: view.state === "all" ? "" : "all", offset: 0 })} /> also those sent back or discarded</label>
      <span class="soft" aria-live="polite">${number(found.found)} found</span><span class="grow" />
      ${may === "operate" && html`<button disabled=${!chosen.length} onClick=${() => setDoing("replay")}>Send back ${chosen.length || ""} …</button><button disabled=${!chosen.length} onClick=${() => setDoing("discard")}>Discard ${chosen.length || ""} …</button>`}
      ${found.found > PAGE && html`<span><button disabled=${!offset} onClick=${() => look({ offset: Math.max(0, offset - PAGE) })}>before</button> ${offset + 1}–${Math.min(found.found, offset + PAGE)} <button disabled=${offset + PAGE >= found.found} onClick=${() => look({ offset: offset + PAGE })}>next</button></span>`}
    </div>
    ${done && html`<p role="status" class="good">Done: ${done}.</p>`}
    <div class="scroll"><table class="cards"><caption class="hidden">Dead letters</caption>
      <thead><tr>${may === "operate" && html`<th><input type="checkbox" aria-label="all that are shown" checked=${all} disabled=${!waiting.length} onChange=${() => setChosen(all ? chosen.filter((n) => !waiting.includes(n)) : [...new Set([...chosen, ...waiting])])} /></th>`}<th>record</th><th>set aside</th><th>error</th><th>value</th><th></th></tr></thead>
      <tbody>${found.items.map((l) => html`<tr key=${l.number}>${may === "operate" && html`<td><input type="checkbox" aria-label=${`choose ${l.origin}`} checked=${chosen.includes(l.number)} disabled=${!!dealt(l)} onChange=${() => choose(l.number)} /></td>`}
        <td class="mono nw">${l.origin}</td><td class="nw" title=${moment(l.at_ms)}>${when(l.at_ms)}${dealt(l) && html`<div class="soft">${dealt(l)}</div>`}</td><td class="cut">${brief(l.error)}</td><td class="mono cut">${brief(l.begins)}</td>
        <td><button class="plain" aria-expanded=${view.open === l.number} onClick=${() => look({ open: view.open === l.number ? "" : l.number })}>show</button></td></tr>
        ${view.open === l.number && html`<tr key=${l.number + "open"}><td colspan="6"><${Letter} which=${l.number} /></td></tr>`}`)}</tbody></table></div>
    ${!found.is_whole && html`<p class="soft">Only the newest are shown. <code>samzapy dlq list JOB.yaml</code> lists all.</p>`}
    ${doing && html`<${Dialog} key=${doing} title=${`${WHAT[doing]} ${chosen.length}`} path=${`/dead-letters/${doing}`} body=${{ which: chosen.slice(0, 1000) }} close=${close} />`}`}
  </section>`;
}
