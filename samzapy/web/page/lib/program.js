// A program of streams: its operators from left to right, each with what it took, gave on and dropped in the last seconds.

import { useRef } from "../vendor/hooks.js";
import { number, rate } from "./format.js";
import { html } from "./parts.js";

const W = 196, H = 64, GAP = 14, BETWEEN = 56, PAD = 8, MAX = 60, RECENT_MS = 8000;

/** Where each operator stands: {placed: {id: {…, x, y}}, width, height}. A column for each step after the topics that are read. Pure. */
export function placed(operators) {
  const column = {}, rows = {}, found = {}, feeding = new Set(operators.flatMap((o) => o.inputs));
  for (const o of operators) column[o.id] = Math.max(-1, ...o.inputs.filter((id) => id in column).map((id) => column[id])) + 1;
  for (const o of operators) // a table that is only looked up in stands beside what looks it up
    for (const id of o.reads) if (id in column && !feeding.has(id) && column[id] === 0) column[id] = Math.max(0, column[o.id] - 1);
  for (const o of operators) {
    const before = o.inputs.filter((id) => id in found), wanted = before.length ? Math.min(...before.map((id) => found[id].row)) : 0, taken = (rows[column[o.id]] ??= new Set());
    let row = wanted;
    while (taken.has(row)) row++;
    taken.add(row);
    found[o.id] = { ...o, row, x: PAD + column[o.id] * (W + BETWEEN), y: PAD + row * (H + GAP) };
  }
  const all = Object.values(found);
  return { placed: found, width: Math.max(...all.map((o) => o.x)) + W + PAD, height: Math.max(...all.map((o) => o.y)) + H + PAD };
}

/** Records a second since the oldest of the last frames: {id: [in, out, dropped, late]}. Pure. */
export function paces(history) {
  const [first, last] = [history[0], history[history.length - 1]];
  if (!first || last.at - first.at < 500) return {};
  const seconds = (last.at - first.at) / 1000;
  return Object.fromEntries(Object.entries(last.counts).filter(([id]) => id in first.counts).map(([id, now]) => [id, now.map((n, i) => (n < 0 ? null : Math.max(0, n - first.counts[id][i]) / seconds))]));
}

/** The counts of the last frames with this one: also of one without news of them, in which all stand still. Pure. */
export function noted(history, at, counts) {
  const before = history.filter((h) => h.at <= at && at - h.at < RECENT_MS), last = before[before.length - 1];
  return counts && last?.at !== at ? [...before, { at, counts }] : before;
}

const cut = (text, n) => (text.length > n ? text.slice(0, n - 1) + "…" : text);

function said(o, counts, pace) {
  if (!counts) return "";
  const [taken, given, , late] = pace || [], parts = [pace ? rate(taken) : `${number(counts[0])} in all`];
  if (given != null && given !== taken) parts.push(`→ ${rate(given)}`);
  if (late) parts.push(`late ${rate(late)}`);
  return parts.join(" ");
}

/** `at`: when the counts were told. */
export function Program({ operators, counts, at: at_ms }) {
  const history = useRef([]), shown = operators.slice(0, MAX), { placed: at, width, height } = placed(shown);
  history.current = noted(history.current, at_ms, counts);
  const pace = paces(history.current);
  const line = (a, b, kind) => html`<path key=${`${a.id} ${b.id}`} class=${kind} d=${`M${a.x + W},${a.y + H / 2} C${a.x + W + BETWEEN / 2},${a.y + H / 2} ${b.x - BETWEEN / 2},${b.y + H / 2} ${b.x},${b.y + H / 2}`} />`;
  return html`<section class="card graph program"><h2>The program</h2><svg role="img" aria-label=${`the program: ${shown.map((o) => `${o.kind} ${o.name}`).join(", ")}`} width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${shown.flatMap((o) => [...o.inputs.filter((id) => id in at).map((id) => line(at[id], at[o.id], "")), ...o.reads.filter((id) => id in at).map((id) => line(at[id], at[o.id], "letters"))])}
    ${Object.values(at).map((o) => html`<g key=${o.id} class=${`node ${o.keeps ? "keeps" : ""}`} transform=${`translate(${o.x},${o.y})`}><rect width=${W} height=${H} rx=${o.keeps ? 22 : 8} />
      <text class="kind" x="14" y="19">${o.kind}${o.stage > 1 ? ` · stage ${o.stage}` : ""}</text><text class="title" x="14" y="37">${cut(o.name || " ", 24)}<title>${`${o.name} (${o.where})`}</title></text>
      <text class="soft" x="14" y="55">${said(o, (counts || {})[o.id], pace[o.id])}</text></g>`)}
  </svg>${operators.length > MAX && html`<p class="soft">and ${operators.length - MAX} more operators: <code>samzapy plan JOB.yaml --graph text</code></p>`}</section>`;
}
