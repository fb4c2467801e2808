// Looking inside: what each container does now, the stacks of one, its profile, a trace of a task's next records.

import { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { post } from "../lib/api.js";
import { Flame, functions, tree } from "../lib/flame.js";
import { cells, clock, micros, number, percent, seconds } from "../lib/format.js";
import { Command, Copy, Shape, Where, hindered, html } from "../lib/parts.js";

const words = (phase) => phase.replaceAll("_", " ");

/** A question: what is asked, whether it is under way, its answer or refusal. */
function useQuestion() {
  const [state, setState] = useState({});
  const newest = useRef(0);
  const ask = (what, path, body) => {
    const number_ = ++newest.current;
    setState({ what, is_busy: true });
    const show = (more) => number_ === newest.current && setState({ what, ...more });
    post(path, body || {}).then((found) => show({ found }), (error) => show({ error }));
  };
  return [state, ask];
}

function Stack({ found }) {
  const { now, threads } = found;
  return html`<div>
    <p><strong>container ${found.container}</strong>, process ${found.pid}, at ${clock(found.at_ms)}: <strong>${words(now.phase)}</strong> for ${seconds(now.seconds)}${now.record && html`, record <code>${now.record}</code>`}${now.at && html`, at <code>${now.at}</code>`}</p>
    ${threads.map((thread, i) => html`<details key=${thread.name + i} open=${thread.is_loop}><summary>thread ${thread.name}${thread.is_loop ? ", the loop" : ""}</summary><pre class="stack">${thread.frames.join("\n")}</pre></details>`)}
  </div>`;
}

function Profile({ found }) {
  const root = useMemo(() => tree(found.folded), [found]), box = useRef(null), [wide, setWide] = useState(800);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWide(Math.max(240, Math.floor(entry.contentRect.width))));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const save = () => {
    const link = document.createElement("a"), url = URL.createObjectURL(new Blob([found.folded], { type: "text/plain" }));
    link.href = url;
    link.download = `container-${found.container}.folded`;
    link.click();
    URL.revokeObjectURL(url);
  };
  return html`<div ref=${box}>
    <p><strong>container ${found.container}</strong>, ${seconds(found.seconds)} until ${clock(found.at_ms)}, ${number(found.samples)} samples · <button class="plain" onClick=${save}>save as folded stacks</button></p>
    ${root.us === 0 ? html`<p>No samples: the loop's thread did not run.</p>` : html`<${Flame} root=${root} wide=${wide} />
    <div class="scroll"><table><caption>Functions, by the time spent in their own lines</caption><thead><tr><th class="n">own</th><th class="n">with what it calls</th><th>function</th></tr></thead>
      <tbody>${functions(root).map((f) => html`<tr key=${f.name}><td class="n">${percent(f.own)}</td><td class="n">${percent(f.whole)}</td><td class="mono">${f.name}</td></tr>`)}</tbody></table></div>`}
  </div>`;
}

function Trace({ found }) {
  if (!found.records.length) return html`<p>${found.task} processed no record in that time.</p>`;
  return html`<div class="scroll"><table><caption>The next records of ${found.task}, in container ${found.container}</caption>
    <thead><tr><th>record</th><th>key</th><th>value</th><th class="n">took</th><th>what its hook did</th></tr></thead>
    <tbody>${found.records.map((r, i) => html`<tr key=${r.record + i}><td class="mono nw">${r.record}</td><td class="mono value">${r.key}</td><td class="mono value">${r.value}</td><td class="n">${micros(r.us)}</td>
      <td class="effects">${r.puts.map((p) => html`<div>put ${p.store} <code>${p.key}</code>: <code>${p.old}</code> → <code>${p.new}</code></div>`)}
        ${r.sent.map((s) => html`<div>sent ${s.topic}${s.partition == null ? "" : `[${s.partition}]`} <code>${s.key}</code>: <code>${s.value}</code></div>`)}
        ${r.more > 0 && html`<div class="soft">and ${r.more} more</div>`}${r.error && html`<div class="bad">raised ${r.error}</div>`}
        ${!r.puts.length && !r.sent.length && !r.error && html`<span class="soft">nothing</span>`}</td></tr>`)}</tbody></table></div>`;
}

/** What a container does at this moment. */
function Now({ c, letters }) {
  if (c.now) {
    const [, before, record, after] = /^(.*?)(\S+\[\d+\]@\d+)?((?: or one .*)?)$/.exec(c.now.record || "");
    return html`<span class="warn">code of the job${before}${record && html`<span class="nw">${record}</span>`}${after} has run for ${seconds(c.now.silent_s)}</span>, at <code>${c.now.at}</code>`;
  }
  if (c.state !== "RUNNING") return c.reason || "–";
  return hindered(c, letters) || html`<span class="soft">no call of the job's code takes longer than a second</span>`;
}

const SHOW = { stack: Stack, profile: Profile, trace: Trace };

export function Inside({ state, may }) {
  const { containers = {}, order = [] } = state, list = Object.values(containers), letters = (one) => cells(state.cells?.[one.id] || "");
  const [container, setContainer] = useState(null), [task, setTask] = useState(""), [records, setRecords] = useState(5), [s, setSeconds] = useState(10);
  const [answer, ask] = useQuestion();
  const c = container ?? (list.find((one) => one.now) || list[0])?.id, t = task || order[0] || "Partition 0", may_ask = may === "operate";
  const line = answer.what === "trace" ? `samzapy debug trace JOB.yaml "${t}" --records ${records}` : answer.what === "profile" ? `samzapy debug profile JOB.yaml --container ${c} --seconds ${s} -o profile.svg` : `samzapy debug stack JOB.yaml --container ${c}`;
  const stack = (id) => (setContainer(id), ask("stack", `/containers/${id}/stack`));
  return html`
    <section class="card"><h2>What each container does now</h2><div class="scroll"><table class="cards"><caption class="hidden">Containers now</caption>
      <thead><tr><th>container</th><th>state</th><th>now</th><th>where</th><th></th></tr></thead>
      <tbody>${list.map((one) => html`<tr key=${one.id}><td>${one.id}</td><td class="nw"><${Shape} c=${one} letters=${letters(one)} /></td>
        <td class="now"><${Now} c=${one} letters=${letters(one)} /></td>
        <td><${Where} c=${one} /></td>
        <td>${may_ask && html`<button onClick=${() => stack(one.id)} aria-label=${`Stack of container ${one.id}`}>Stack</button>`}</td></tr>`)}</tbody></table></div></section>
    <section class="card"><h2>Ask a container</h2>
      ${!may_ask ? html`<p>Stacks, profiles and traces need a token that may operate: <code>samzapy ui JOB.yaml</code> without --view prints an address with one.</p>` : html`
      <div class="tools"><label>container <select value=${c} onChange=${(e) => setContainer(Number(e.target.value))}>${list.map((one) => html`<option value=${one.id}>${one.id}</option>`)}</select></label>
        <button disabled=${answer.is_busy} onClick=${() => stack(c)}>Stack</button>
        <label>profile for <select value=${s} onChange=${(e) => setSeconds(Number(e.target.value))}>${[5, 10, 30].map((n) => html`<option value=${n}>${n} s</option>`)}</select></label>
        <button disabled=${answer.is_busy} onClick=${() => ask("profile", `/containers/${c}/profile`, { seconds: s })}>Profile</button></div>
      <div class="tools"><label>task <input value=${t} list="tasks-shown" onInput=${(e) => setTask(e.target.value)} /></label><datalist id="tasks-shown">${order.map((name) => html`<option value=${name} />`)}</datalist>
        <label>next <select value=${records} onChange=${(e) => setRecords(Number(e.target.value))}>${[1, 5, 20, 100].map((n) => html`<option value=${n}>${n} records</option>`)}</select></label>
        <button disabled=${answer.is_busy} onClick=${() => ask("trace", `/tasks/${encodeURIComponent(t)}/trace`, { records, seconds: 30 })}>Trace</button></div>
      <p class="soft">Asking changes nothing in the job. The same in a terminal: <${Command} text=${line} /> <${Copy} text=${line} /></p>`}
    </section>
    ${(answer.is_busy || answer.found || answer.error) && html`<section class="card" aria-live="polite"><h2>${{ stack: "Stack", profile: "Profile", trace: "Trace" }[answer.what]}</h2>
      ${answer.is_busy ? html`<p class="soft">${answer.what === "profile" ? `sampling for ${s} s …` : answer.what === "trace" ? "waiting for the next records, 30 s at most …" : "…"}</p>` : answer.error ? html`<p><span class="bad">${answer.error.message}</span> ${answer.error.remedy}</p>` : html`<${SHOW[answer.what]} key=${answer.found.at_ms} found=${answer.found} />`}</section>`}`;
}
