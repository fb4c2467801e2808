// Parts that more than one view is made of.

import { h } from "../vendor/preact.js";
import { useEffect, useState } from "../vendor/hooks.js";
import htm from "../vendor/htm.js";
import { named } from "./api.js";
import { largest, percent, seconds, some } from "./format.js";

/** Markup, in which commands name this job's file. */
export const html = htm.bind((type, props, ...children) => h(type, props, ...children.map((child) => (typeof child === "string" ? named(child) : child))));

const TONES = { RUNNING: "good", OK: "good", FINISHED: "good", STOPPED: "soft", REPLACED: "soft", RESTORING: "restore", LOST: "bad", FAILED: "bad", FENCED: "bad", "NOT KNOWN": "bad", "NOT ANSWERING": "bad", ENDED: "soft", "NEVER RAN": "soft" };

/** A state as a shape, a colour and a word. */
export const State = ({ of, tone }) => html`<span class=${`state ${tone || TONES[of] || "warn"}`}>${of || "–"}</span>`;

/** What a container does instead of its work, in words; "" if it works. `letters`: of its tasks. */
export function hindered(c, letters) {
  if (c.now) return `in one call for ${seconds(c.now.silent_s)}`;
  const restoring = letters.filter((letter) => letter === "s").length;
  return restoring ? `restores ${some(restoring, "task")}` : "";
}

/** A container's state, with what it does if that is not its work, and how often it died. */
export function Shape({ c, letters }) {
  const instead = hindered(c, letters);
  return html`<${State} of=${c.state} tone=${instead && c.state === "RUNNING" ? "warn" : ""} /> <${Badge} of=${instead ? "" : c.badge} />
    ${instead && html`<div class="warn">${instead}</div>`}${c.restarts ? html`<div class=${c.restarts > 2 ? "warn" : "soft"}>started again ${c.restarts === 1 ? "once" : `${c.restarts} times`}</div>` : ""}`;
}

/** Where a container runs. */
export const Where = ({ c }) => html`${c.host || "–"}${c.pid ? html`<span class="soft">, pid ${c.pid}</span>` : ""}`;

export const Badge = ({ of }) => (of ? html`<span class=${`badge ${of.split(" ")[0]}`}>${of}</span>` : null);

const words = (name) => name.replace("_", " ");

const narrow = matchMedia("(max-width: 640px)");

/** Whether this is a telephone's screen, or as narrow. */
export function useNarrow() {
  const [is_narrow, setNarrow] = useState(narrow.matches);
  useEffect(() => {
    const turned = () => setNarrow(narrow.matches);
    narrow.addEventListener("change", turned);
    return () => narrow.removeEventListener("change", turned);
  }, []);
  return is_narrow;
}

/** On a narrow screen each row of a table is a card (theme.css), in which every cell has its column's name. */
function nameCells() {
  if (!narrow.matches) return;
  for (const table of document.querySelectorAll("table.cards")) {
    const names = Array.from(table.tHead.rows[0].cells, (cell) => cell.textContent.replace(/ [↓↑]$/, ""));
    for (const row of table.tBodies[0].rows) for (const cell of row.cells) if (cell.colSpan === 1 && cell.dataset.name !== names[cell.cellIndex]) cell.dataset.name = names[cell.cellIndex];
  }
}

new MutationObserver(nameCells).observe(document.body, { childList: true, subtree: true });
narrow.addEventListener("change", nameCells);

/** A loop's time as a bar, and in words. */
export function Loop({ of, legend = true }) {
  const shares = largest(of);
  const text = shares.map(([name, share]) => `${words(name)} ${percent(share)}`).join(", ") || "not known yet";
  return html`<div>
    <div class="loop" role="img" aria-label=${`the loop's time: ${text}`} title=${text}>
      ${shares.map(([name, share]) => html`<i key=${name} class=${`p-${name}`} style=${{ width: `${share * 100}%` }} />`)}
    </div>
    ${legend && html`<div class="legend">${shares.slice(0, 4).map(([name, share]) => html`<span class=${`p-${name}`}>${words(name)} ${percent(share)}</span>`)}</div>`}
  </div>`;
}

/** A line without axes. The numbers beside it say what it shows. */
export function Spark({ points, tone = "var(--process)" }) {
  points = points.slice(Math.max(0, points.findIndex((p) => p))); // before the first reports nothing is known, and 0 is told
  const known = points.filter((p) => p != null);
  if (known.length < 2 || !known.some((p) => p)) return null;
  const top = Math.max(...known, 1e-9), step = 100 / (points.length - 1);
  const at = points.map((p, i) => `${(i * step).toFixed(1)},${(28 - 24 * ((p || 0) / top)).toFixed(1)}`);
  return html`<svg class="spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
    <polygon points=${`0,30 ${at.join(" ")} 100,30`} fill=${tone} opacity="0.12" />
    <polyline points=${at.join(" ")} fill="none" stroke=${tone} stroke-width="1.5" vector-effect="non-scaling-stroke" />
  </svg>`;
}

export function Copy({ text }) {
  const line = named(text);
  return html`<button class="plain" onClick=${() => navigator.clipboard?.writeText(line)} aria-label=${`copy: ${line}`}>copy</button>`;
}

/** A command, which is broken between its words only. */
export const Command = ({ text }) => html`<code>${named(text).split(" ").map((word, i) => html`${i ? " " : ""}<span class="word">${word}</span>`)}</code>`;

const COMMAND = /^(samzapy |kafka-)/;

/** What to do: words, and in them what can be typed, with a button that copies it. */
export function Remedy({ text }) {
  const parts = COMMAND.test(text) ? ["", text] : text.split("`");
  return html`<div class="remedy">${parts.map((part, i) => (!part ? null : i % 2 ? html`<${Command} text=${part} />${part.includes(" ") && html`<${Copy} text=${part} />`}` : html`<span>${part}</span>`))}</div>`;
}

/** How far a restore is. */
export function Restored({ needed, remaining, eta }) {
  const have = needed ? 1 - remaining / needed : 0;
  return html`<span role="img" aria-label=${`restored ${percent(have)}`}><span class="meter"><i style=${{ width: `${have * 100}%` }} /></span>${percent(have)}${eta}</span>`;
}
