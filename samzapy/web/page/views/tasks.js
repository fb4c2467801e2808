// Tasks × hosts: a square for each task, and the table beside it.

import { useEffect, useRef } from "../vendor/hooks.js";
import { bytes, cells, micros, number, percent, rate, seconds } from "../lib/format.js";
import { Loop, Restored, Shape, State, hindered, html } from "../lib/parts.js";

const KEYS = { r: "running", l: "running, behind by 10 s or more", s: "restoring", b: "bootstrapping", w: "waiting for a container", e: "stopped" };
const COLUMNS = [["name", "task"], ["state", "state"], ["lag", "records behind"], ["behind_s", "behind by"], ["rate", "rate"], ["busy", "busy"], ["us", "per record"], ["processed", "processed"], ["container", "container"]];
const PAGE = 50;

function Map({ letters, label }) {
  const canvas = useRef(null);
  const text = letters.join("");
  useEffect(() => {
    const c = canvas.current, wide = c.clientWidth || 300, size = letters.length > 400 ? 7 : letters.length > 80 ? 10 : 14;
    const across = Math.max(1, Math.floor(wide / (size + 2))), high = Math.ceil(letters.length / across) * (size + 2);
    const ratio = devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
    const colours = { r: "--good", l: "--held", s: "--restore", b: "--commit", w: "--bad", e: "--other" };
    c.width = wide * ratio;
    c.height = high * ratio;
    c.style.height = `${high}px`;
    const pen = c.getContext("2d");
    pen.scale(ratio, ratio);
    letters.forEach((letter, i) => {
      const x = (i % across) * (size + 2), y = Math.floor(i / across) * (size + 2), edge = letter === "l" ? size / 4 : 1;
      pen.fillStyle = pen.strokeStyle = style.getPropertyValue(colours[letter] || "--bad");
      if ("slbw".includes(letter)) { // a shape too, for those who do not see the colours: half full, a frame (theme.css has the same)
        pen.lineWidth = edge;
        pen.strokeRect(x + edge / 2, y + edge / 2, size - edge, size - edge);
        if (letter === "s") pen.fillRect(x, y + size / 2, size, size / 2);
        if (letter === "b") pen.fillRect(x, y, size / 2, size);
      } else if (letter === "e") pen.fillRect(x + size / 4, y + size / 4, size / 2, size / 2);
      else pen.fillRect(x, y, size, size);
    });
  }, [text, document.documentElement.dataset.theme]);
  return html`<canvas class="map" ref=${canvas} role="img" aria-label=${label} />`;
}

function Box({ c, letters }) {
  const count = (letter) => letters.filter((l) => l === letter).length;
  const words = Object.keys(KEYS).filter((l) => count(l)).map((l) => `${count(l)} ${KEYS[l]}`).join(", ");
  return html`<div class="box">
    <div class="bar"><strong>container ${c.id}</strong><span class="shape"><${Shape} c=${c} letters=${letters} /></span></div>
    <${Map} letters=${letters} label=${`container ${c.id}: ${words}`} />
    <div class="soft">${words || "no tasks"} · ${bytes(c.memory_bytes)}${c.preferred_host && c.host && c.preferred_host !== c.host ? ` · preferred host: ${c.preferred_host}` : ""}</div>
    ${c.reason && html`<div class="bad">${c.reason}</div>`}
    <${Loop} of=${c.loop} legend=${false} />
  </div>`;
}

export function Tasks({ state, view, look }) {
  const { containers = {}, cells: parts = {}, rows = {}, order = [], job } = state;
  const hosts = {};
  for (const c of Object.values(containers)) (hosts[c.host || "no host"] ??= []).push(c);
  const nobody = cells(parts[""] || "");
  const sorted = (name) => (view.sort === name ? "ascending" : view.sort === `-${name}` ? "descending" : "none");
  const offset = Number(view.offset || 0);
  return html`
    <section><div class="keys">${Object.entries(KEYS).map(([letter, text]) => html`<span><i class=${`k-${letter}`} />${text}</span>`)}</div></section>
    <div class="hosts">
      ${Object.entries(hosts).map(([host, list]) => html`<section class=${`card host ${list.length > 2 ? "many" : ""}`} key=${host}><h2>${host} · ${list.length} ${list.length === 1 ? "container" : "containers"}</h2>
        <div class="boxes">${list.map((c) => html`<${Box} key=${c.id} c=${c} letters=${cells(parts[c.id] || "")} />`)}</div></section>`)}
      ${nobody.length > 0 && html`<section class="card host"><h2>in no container</h2><${Map} letters=${nobody} label=${`${nobody.length} tasks`} /></section>`}
    </div>
    ${job.containers > Object.keys(containers).length && html`<p class="soft">and ${job.containers - Object.keys(containers).length} more containers; the table below has the tasks of all</p>`}
    <section class="card">
      <div class="tools"><label>find <input type="search" maxlength="200" value=${view.find || ""} placeholder="Partition 7, RESTORING …" onInput=${(e) => look({ find: e.target.value, offset: 0 })} /></label>
        <span class="soft" aria-live="polite">${number(job.found)} of ${number(job.tasks)} tasks</span><span class="grow" />
        ${job.found > PAGE && html`<span><button disabled=${!offset} onClick=${() => look({ offset: Math.max(0, offset - PAGE) })}>before</button> ${offset + 1}–${Math.min(job.found, offset + PAGE)} <button disabled=${offset + PAGE >= job.found} onClick=${() => look({ offset: offset + PAGE })}>next</button></span>`}
      </div>
      <div class="scroll"><table class="cards sorted"><caption class="hidden">Tasks</caption>
        <thead><tr>${COLUMNS.map(([name, text], i) => html`<th class=${i > 1 && name !== "container" ? "n" : ""} aria-sort=${sorted(name)}><button onClick=${() => look({ sort: sorted(name) === "descending" ? name : `-${name}`, offset: 0 })}>${text}${sorted(name) === "none" ? "" : sorted(name) === "descending" ? " ↓" : " ↑"}</button></th>`)}<th>state restored</th><th>copies</th></tr></thead>
        <tbody>${order.map((name) => rows[name]).filter(Boolean).map((t) => { const stuck = containers[t.container]?.now && hindered(containers[t.container], []); return html`<tr key=${t.name}>
          <td class="nw">${t.name}</td><td class="nw"><${State} of=${t.state} tone=${(stuck || t.is_behind) && t.state === "RUNNING" ? "warn" : ""} />${stuck && html`<div class="warn">${`its container is ${stuck}`}</div>`}</td><td class="n">${number(t.lag)}</td><td class="n">${seconds(t.behind_s)}</td>
          <td class="n">${rate(t.rate)}</td><td class="n">${percent(t.busy)}</td><td class="n">${micros(t.us)}</td><td class="n">${number(t.processed)}</td><td>${t.container ?? "–"}</td>
          <td class="nw">${t.remaining ? html`<${Restored} needed=${t.needed} remaining=${t.remaining} eta=${t.eta_s == null ? "" : ` · ${seconds(t.eta_s)} left`} />` : t.from || "–"}${t.reason ? html`<div class="warn reason">${t.reason}</div>` : ""}</td>
          <td class="nw">${(t.copies || []).map((c) => `${c.host} (${c.lag == null ? "?" : number(c.lag)})`).join(", ") || "–"}</td></tr>`; })}</tbody>
      </table></div>
    </section>`;
}
