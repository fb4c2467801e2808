// Records of the job's topics: the newest, then those that come, found by the driver.

import { useEffect, useRef, useState } from "../vendor/hooks.js";
import { get } from "../lib/api.js";
import { brief, moment, number, when } from "../lib/format.js";
import { html } from "../lib/parts.js";
import { Shown } from "./letters.js";

const KEPT = 500, EVERY_MS = 1000, MANY = 5000;

function Row({ topic, r, is_open, open }) {
  return html`<tr><td class="mono nw">${topic}[${r.partition}]@${r.offset}</td><td class="nw" title=${moment(r.at_ms)}>${when(r.at_ms)}</td>
      <td class="mono cut key">${brief(r.key.text) ?? html`<i class="soft">none</i>`}</td><td class="mono cut">${brief(r.value.text) ?? html`<i class="soft">none (deletes its key)</i>`}${r.value.problem && html`<div class="warn">${r.value.problem}</div>`}</td>
      <td><button class="plain" aria-expanded=${is_open} onClick=${open}>show</button></td></tr>
    ${is_open && html`<tr><td colspan="5"><dl class="facts"><dt>key</dt><dd><${Shown} of=${r.key} /></dd><dt>value</dt><dd><${Shown} of=${r.value} /></dd>
      <dt>headers</dt><dd>${r.headers.length ? r.headers.map(([name, text]) => html`<div class="mono">${name}: ${text ?? "–"}</div>`) : html`<span class="soft">none</span>`}</dd></dl></td></tr>`}`;
}

export function Topics({ view, look }) {
  const [topics, setTopics] = useState([]), [rows, setRows] = useState([]), [told, setTold] = useState(null), [error, setError] = useState(null), [is_live, setLive] = useState(true), [open, setOpen] = useState(""), [read, setRead] = useState(0);
  const topic = view.topic || topics[0]?.topic, cursor = useRef("");
  useEffect(() => void get("/topics").then((found) => setTopics(found.items), setError), []);
  const query = JSON.stringify([topic, view.partition || "", view.contains || "", view.from || "last"]);
  useEffect(() => ((cursor.current = ""), setRows([]), setTold(null), setRead(0), setError(null)), [query]);
  useEffect(() => {
    if (!topic) return;
    let is_over = false, timer = null;
    const next = async () => {
      const begins = !cursor.current;
      let wait = EVERY_MS;
      if (document.visibilityState !== "hidden" && (is_live || begins)) {
        const asked = new URLSearchParams({ partition: view.partition || "", contains: view.contains || "", limit: 100, ...(begins ? { from: view.from || "last" } : { after: cursor.current }) });
        try {
          const found = await get(`/topics/${encodeURIComponent(topic)}/records?${asked}`);
          if (is_over) return;
          const is_far = !view.contains && found.behind > MANY && is_live && view.from !== "first"; // who filters sees all that match
          cursor.current = is_far ? "" : found.next;
          if (is_far) look({ from: "now" });
          else wait = found.behind ? 50 : EVERY_MS;
          setRows((now) => [...now, ...found.items].slice(-KEPT));
          setRead((n) => n + found.read);
          setTold(found);
          setError(null);
        } catch (refused) {
          if (!is_over) setError(refused);
        }
      }
      if (!is_over) timer = setTimeout(next, wait);
    };
    timer = setTimeout(next, view.contains ? 300 : 0);
    return () => ((is_over = true), clearTimeout(timer));
  }, [query, is_live]);
  const chosen = topics.find((t) => t.topic === topic);
  return html`<section class="card"><h2>Records</h2>
    <div class="tools">
      <label>topic <select value=${topic} onChange=${(e) => look({ topic: e.target.value, partition: "" })}>${topics.map((t) => html`<option value=${t.topic}>${t.topic} (${t.kind})</option>`)}</select></label>
      <label>partition <input type="number" min="0" class="few" value=${view.partition || ""} placeholder="all" onInput=${(e) => look({ partition: e.target.value })} /></label>
      <label>contains <input type="search" maxlength="200" value=${view.contains || ""} onInput=${(e) => look({ contains: e.target.value })} /></label>
      <label>from <select value=${view.from || "last"} onChange=${(e) => look({ from: e.target.value === "last" ? "" : e.target.value })}><option value="last">the newest</option><option value="now">now</option><option value="first">the oldest</option></select></label>
      <button aria-pressed=${is_live} onClick=${() => setLive(!is_live)}>${is_live ? "pause" : "go on"}</button>
    </div>
    <p class="soft" aria-live="off">${told ? html`${number(rows.length)} shown of ${number(read)} read${told.behind ? `; ${number(told.behind)} offsets still to be read` : ""}${told.passed_over ? `; ${number(told.passed_over)} were deleted before they were read` : ""}` : "…"}${chosen ? ` · ${chosen.key} → ${chosen.value}` : ""} · committed records only; looking changes nothing in Kafka</p>
    ${error && html`<p class="bad" role="status">${error.message} ${error.remedy}</p>`}
    <div class="scroll"><table class="cards"><caption class="hidden">Records, the newest first</caption><thead><tr><th>record</th><th>time</th><th>key</th><th>value</th><th></th></tr></thead>
      <tbody>${[...rows].reverse().map((r) => { const id = `${r.partition}@${r.offset}`; return html`<${Row} key=${id} topic=${topic} r=${r} is_open=${open === id} open=${() => setOpen(open === id ? "" : id)} />`; })}</tbody></table></div>
    ${told && !rows.length && html`<p class="soft">${view.contains ? "No record that was read contains this text." : "There are no records yet."}</p>`}
  </section>`;
}
