// What happened: lanes of states, marks of events, the lag below, and the same as a list.

import { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { clock, moment, number, seconds } from "../lib/format.js";
import { html } from "../lib/parts.js";

const MARKS = { died: "✖", failed: "✖", launched: "▹", named: "▸", moved: "⇄", restored: "↻", scale: "◆", restart: "◆", stop: "◆", pause: "◆", resume: "◆", commit: "◆", profile: "◆", trace: "◆", held: "‖", fenced: "┄", state: "●", hint: "▲" };
const KINDS = { job: "job", container: "containers", task: "moves", restore: "restores", people: "requests of people" };
const COLOURS = { RUNNING: "var(--good)", STARTING: "var(--process)", RESTORING: "var(--restore)", DEGRADED: "var(--held)", LOST: "var(--bad)", FAILED: "var(--bad)", STOPPING: "var(--wait)", STOPPED: "var(--wait)", PAUSED: "var(--commit)" };

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
  const left = 44, high = 30, x = (ms) => left + Math.max(0, Math.min(1, (ms - from) / (to - from))) * (wide - left - 8);
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

function Plot({ series, from, to }) {
  const place = useRef(null), plot = useRef(null);
  useEffect(() => {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name);
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    plot.current = new uPlot({
      width: place.current.clientWidth, height: 180, legend: { live: true }, cursor: { y: false },
      axes: [{ ...axis, size: 30, space: 90, values: (_, ticks) => ticks.map((t) => clock(t * 1000)) }, { ...axis, size: 64 }, { ...axis, side: 1, scale: "rate", size: 64, grid: { show: false } }],
      series: [{ label: "at", value: (_, t) => (t == null ? "–" : clock(t * 1000)) }, { label: "behind, records", points: { show: false }, value: (_, n) => number(n), stroke: colour("--held"), fill: colour("--warn-soft"), width: 1.5 }, { label: "in, records/s", points: { show: false }, value: (_, n) => number(n), scale: "rate", stroke: colour("--process"), width: 1.5 }],
    }, [[], [], []], place.current);
    const watch = new ResizeObserver(([entry]) => plot.current?.setSize({ width: entry.contentRect.width, height: 180 }));
    watch.observe(place.current);
    return () => {
      watch.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [document.documentElement.dataset.theme]);
  useEffect(() => {
    const shown = series.filter((p) => p.at_ms >= from && p.at_ms <= to);
    plot.current?.setData([shown.map((p) => p.at_ms / 1000), shown.map((p) => p.lag), shown.map((p) => p.in)]);
  }, [series, from, to]);
  const last = series[series.length - 1];
  return html`<div class="plot" ref=${place} role="img" aria-label=${`behind ${number(last?.lag)} records now`} />`;
}

export function Timeline({ events, commits, series }) {
  const [minutes, setMinutes] = useState(events.length && Date.now() - events[0].at_ms < 120000 ? 2 : 10), [kinds, setKinds] = useState(Object.keys(KINDS));
  const to = Math.max(Date.now() - 1000, ...events.slice(-1).map((e) => e.at_ms)), from = to - minutes * 60000;
  const shown = useMemo(() => events.filter((e) => kinds.includes(e.kind)), [events, kinds]);
  return html`
    <section class="card">
      <div class="tools"><label>last <select value=${minutes} onChange=${(e) => setMinutes(Number(e.target.value))}>${[[2, "2 minutes"], [10, "10 minutes"], [60, "hour"], [360, "6 hours"]].map(([n, text]) => html`<option value=${n}>${text}</option>`)}</select></label>
        ${Object.entries(KINDS).map(([kind, text]) => html`<label><input type="checkbox" checked=${kinds.includes(kind)} onChange=${() => setKinds(kinds.includes(kind) ? kinds.filter((k) => k !== kind) : [...kinds, kind])} /> ${text}</label>`)}</div>
      <${Lanes} events=${events} commits=${commits} from=${from} to=${to} />
      <div class="keys">${["RUNNING", "STARTING", "PAUSED", "DEGRADED", "LOST", "STOPPED"].map((s) => html`<span><i style=${{ background: COLOURS[s] }} />${s.toLowerCase()}</span>`)}<span>✖ died</span><span>⇄ a task was moved to it</span><span>↻ restored</span><span>◆ asked for by a person</span></div>
    </section>
    <section class="card"><h2>Records behind, and records in per second</h2><${Plot} series=${series} from=${from} to=${to} /></section>
    <section class="card"><h2>Events</h2><${EventList} events=${shown.slice(-300).reverse()} /></section>`;
}
