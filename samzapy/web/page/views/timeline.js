// What happened: lanes of states, marks of events, the lag below, and the same as a list.

import { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { every, get } from "../lib/api.js";
import { clock, moment, number, rate, seconds, short } from "../lib/format.js";
import { joined } from "../lib/kept.js";
import { now } from "../lib/now.js";
import { html } from "../lib/parts.js";

const MARKS = { died: "✖", failed: "✖", launched: "▹", named: "▸", moved: "⇄", restored: "↻", scale: "◆", restart: "◆", stop: "◆", pause: "◆", resume: "◆", commit: "◆", profile: "◆", trace: "◆", held: "‖", fenced: "┄", state: "●", hint: "▲" };
const WORDS = { died: "died", failed: "died", launched: "is being started", named: "has a process", moved: "a task was moved", restored: "a store was restored", scale: "asked for by a person", restart: "asked for by a person", stop: "asked for by a person", pause: "asked for by a person", resume: "asked for by a person", commit: "asked for by a person", profile: "asked for by a person", trace: "asked for by a person", held: "could not be heard", fenced: "was fenced", state: "a state", hint: "a hint" };
const KINDS = { job: "job", container: "containers", task: "moves", restore: "restores", people: "requests of people" };
const COLOURS = { RUNNING: "var(--good)", STARTING: "var(--process)", RESTORING: "var(--restore)", DEGRADED: "var(--warn)", LOST: "var(--bad)", FAILED: "var(--bad)", STOPPING: "var(--other)", STOPPED: "var(--other)", PAUSED: "var(--commit)" };

/** An event's text, all in one form: hints are sentences with a full stop. What begins with the name of a person is left alone. */
const as_title = (e) => (e.kind === "people" ? e.text : e.text[0].toUpperCase() + e.text.slice(1)).replace(/\.$/, "");

export const EventList = ({ events }) => html`<ul class="events">${events.length ? events.map((e) => html`<li key=${e.n}><time class="soft" title=${moment(e.at_ms)}>${clock(e.at_ms)}</time>
  <span aria-hidden="true" class=${e.what === "died" || e.what === "failed" ? "bad" : e.kind === "people" || e.what === "hint" ? "warn" : "soft"}>${MARKS[e.what] || "·"}</span><span>${as_title(e)}</span></li>`) : html`<li class="soft"><span /><span /><span>nothing yet</span></li>`}</ul>`;

/** Spans of states of each lane: {lane: [{from, to, state}]}. Pure. */
export function spans(events, now) {
  const lanes = {};
  for (const e of events) {
    if (!e.state) continue;
    const lane = e.kind === "job" ? "job" : `c${e.container}`;
    const list = (lanes[lane] ??= []);
    const last = list[list.length - 1];
    if (last && last.state === e.state) continue;
    if (last) last.to = e.at_ms;
    list.push({ from: e.at_ms, to: now, state: e.state });
  }
  return lanes;
}

function Lanes({ events, commits, from, to }) {
  const lanes = spans(events, to), names = Object.keys(lanes).sort((a, b) => (a === "job" ? -1 : b === "job" ? 1 : Number(a.slice(1)) - Number(b.slice(1)))).slice(0, 40);
  const box = useRef(null), [wide, setWide] = useState(900);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWide(entry.contentRect.width));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const high = 30, x = (ms) => INSET + Math.max(0, Math.min(1, (ms - from) / (to - from))) * (wide - 2 * INSET);
  const many = Math.max(2, Math.floor(wide / 160)), ticks = Array.from({ length: many }, (_, i) => from + ((to - from) * i) / (many - 1));
  const longest = Math.max(0.05, ...commits.map((c) => c.seconds));
  return html`<div ref=${box}><svg class="lanes" role="img" aria-label=${`states of the job and ${names.length - 1} containers from ${clock(from)} to ${clock(to)}; the list below has the same`} width=${wide} height=${names.length * high + 26} viewBox=${`0 0 ${wide} ${names.length * high + 26}`}>
    ${ticks.map((t, i) => html`<g><line class="axis" x1=${x(t)} x2=${x(t)} y1="16" y2=${names.length * high + 22} /><text x=${x(t)} y="11" text-anchor=${i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle"}>${clock(t)}</text></g>`)}
    ${names.map((name, row) => {
      const y = 24 + row * high, number_ = Number(name.slice(1));
      return html`<g key=${name}><text x="0" y=${y + 10}>${name}</text>
        ${lanes[name].filter((s) => s.to >= from).map((s) => html`<rect x=${x(s.from)} y=${y} width=${Math.max(2, x(s.to) - x(s.from))} height="12" rx="2" fill=${COLOURS[s.state] || "var(--other)"} opacity=${s.state === "RUNNING" ? 0.75 : 1}><title>${`${s.state} from ${clock(s.from)} to ${clock(s.to)}, ${seconds((s.to - s.from) / 1000)}`}</title></rect>`)}
        ${name !== "job" && commits.filter((c) => c.container === number_ && c.at_ms >= from).map((c) => html`<rect x=${x(c.at_ms)} y=${y + 24 - 9 * (c.seconds / longest)} width="1.5" height=${9 * (c.seconds / longest)} fill="var(--commit)"><title>${`commit (${c.why}) at ${clock(c.at_ms)}: ${seconds(c.seconds)}`}</title></rect>`)}
        ${events.filter((e) => e.at_ms >= from && (name === "job" ? e.kind === "people" : e.container === number_ && ["died", "failed", "moved", "restored"].includes(e.what))).map((e) => html`<text x=${x(e.at_ms) - 5} y=${y + 11} class=${`mark ${e.what}`}><title>${e.text}</title>${MARKS[e.what] || "◆"}</text>`)}</g>`;
    })}
  </svg></div>`;
}

const INSET = 48, SIDE = 20; // of both charts, left and right, so that a time stands at the same place in both; how near to it a label may be

/** What is behind and what comes in, over the same time as the lanes; the numbers of the moment pointed at, or the newest. */
function Plot({ series, from, to }) {
  const place = useRef(null), plot = useRef(null), span = useRef([from, to]), [at, setAt] = useState(null);
  span.current = [from / 1000, to / 1000];
  useEffect(() => {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name);
    const axis = { grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif", size: INSET, values: (_, ticks) => ticks.map((n) => (n < 1e6 ? short(n).replace(".0", "") : `${n / 1e6} M`)) };
    const inside = (u, ticks) => ticks.map((t) => (u.valToPos(t, "x") < SIDE || u.valToPos(t, "x") > u.over.clientWidth - SIDE ? null : t));
    const from_0 = (_, least, most) => [0, Math.max(4, 1.1 * most)];
    const size = (width) => ({ width, height: width > 1400 ? 280 : 180 });
    plot.current = new uPlot({
      ...size(place.current.clientWidth), legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { range: () => span.current }, y: { range: from_0 }, rate: { range: from_0 } },
      hooks: { setCursor: [(u) => setAt(u.cursor.idx ?? null)] },
      axes: [{ ...axis, stroke: colour("--soft"), size: 30, space: 84, filter: inside, values: (_, ticks) => ticks.map((t) => (t == null ? null : clock(t * 1000))) }, { ...axis, stroke: colour("--warn") }, { ...axis, stroke: colour("--accent"), side: 1, scale: "rate", grid: { show: false } }],
      series: [{}, { points: { show: false }, stroke: colour("--warn"), fill: colour("--warn-soft"), width: 1.5 }, { points: { show: false }, scale: "rate", stroke: colour("--accent"), width: 1.5 }],
    }, [[], [], []], place.current);
    const watch = new ResizeObserver(([entry]) => plot.current?.setSize(size(entry.contentRect.width)));
    watch.observe(place.current);
    return () => {
      watch.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [document.documentElement.dataset.theme]);
  const known = series.slice(Math.max(0, series.findIndex((p) => p.in || p.lag))); // before the first reports nothing is known, and 0 is told
  const shown = known.filter((p) => p.at_ms >= from && p.at_ms <= to), point = shown[at] || shown[shown.length - 1];
  useEffect(() => plot.current?.setData([shown.map((p) => p.at_ms / 1000), shown.map((p) => p.lag), shown.map((p) => p.in)]), [series, from, to]);
  return html`<div class="axes"><span class="warn">${number(point?.lag)} records behind</span><span class="soft">${point ? clock(point.at_ms) : ""}</span><span class="in">${rate(point?.in).replace("/s", " records/s")} in</span></div>
    <div class="plot" ref=${place} role="img" aria-label=${`behind ${number(series[series.length - 1]?.lag)} records now`} />`;
}

const FINE_MINUTES = 10, COARSE = "/series?step=30", COARSE_MS = 30000; // the curves of longer spans have a point each half minute

export function Timeline({ events, commits, series }) {
  const [minutes, setMinutes] = useState(events.length && now() - events[0].at_ms < 120000 ? 2 : 10), [kinds, setKinds] = useState(Object.keys(KINDS));
  const to = Math.max(now() - 1000, ...events.slice(-1).map((e) => e.at_ms)), from = to - minutes * 60000;
  const [coarse, setCoarse] = useState([]), is_long = minutes > FINE_MINUTES;
  useEffect(() => (is_long ? every(COARSE_MS, () => get(COARSE).then((found) => setCoarse(found.items), () => {})) : undefined), [is_long]);
  const points = useMemo(() => (is_long ? joined(coarse, series) : series), [is_long, coarse, series]);
  const shown = useMemo(() => events.filter((e) => kinds.includes(e.kind)), [events, kinds]);
  const told = new Set(events.map((e) => e.state)), states = Object.keys(COLOURS).filter((s) => told.has(s));
  const marks = [...new Map(shown.slice(-300).filter((e) => WORDS[e.what]).map((e) => [WORDS[e.what], MARKS[e.what]]))];
  return html`
    <section class="card">
      <div class="tools"><label>last <select value=${minutes} onChange=${(e) => setMinutes(Number(e.target.value))}>${[[2, "2 minutes"], [10, "10 minutes"], [60, "hour"], [360, "6 hours"]].map(([n, text]) => html`<option value=${n}>${text}</option>`)}</select></label>
      </div>
      <${Lanes} events=${events} commits=${commits} from=${from} to=${to} />
      <div class="keys">${states.map((s) => html`<span><i style=${{ background: COLOURS[s] }} />${s.toLowerCase()}</span>`)}<span><i style=${{ background: "var(--commit)" }} />a commit, of the job's last 256: the higher, the longer</span><span>✖ died</span><span>⇄ a task was moved to it</span><span>↻ restored</span><span>◆ asked for by a person</span></div>
    </section>
    <section class="card"><h2>Records behind, and records in per second</h2><${Plot} series=${points} from=${from} to=${to} /></section>
    <section class="card"><h2>Events</h2>
      <div class="tools">${Object.entries(KINDS).map(([kind, text]) => html`<label><input type="checkbox" checked=${kinds.includes(kind)} onChange=${() => setKinds(kinds.includes(kind) ? kinds.filter((k) => k !== kind) : [...kinds, kind])} /> ${text}</label>`)}</div>
      ${marks.length > 0 && html`<div class="keys">${marks.map(([words, mark]) => html`<span>${mark} ${words}</span>`)}</div>`}
      <${EventList} events=${shown.slice(-300).reverse()} /></section>`;
}
