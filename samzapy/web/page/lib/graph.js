// The job as a picture: inputs left, tasks in the middle, outputs right, stores below. Laid out by columns: there are few nodes.

import { number, percent, rate, some } from "./format.js";
import { html, useNarrow } from "./parts.js";

const W = 210, H = 62, GAP = 18, BETWEEN = 150, PAD = 16, SIDE = 34;
const MAX_NODES = 14;

/** The same one below the other, for a narrow screen: edges go along the left side. Pure. */
export function stacked(nodes, wide) {
  const order = ["input", "job", "store", "output", "dead letters"], of = (node) => order.indexOf(node.kind);
  const shown = order.flatMap((kind) => nodes.filter((n) => n.kind === kind).slice(0, MAX_NODES));
  let y = 0;
  const placed = shown.map((node, i) => {
    y += i === 0 ? 1 : of(node) === of(shown[i - 1]) ? 8 : GAP;
    const h = node.kind === "job" ? H + 22 : H, one = { ...node, x: SIDE, y, w: wide - SIDE - 1, h };
    y += h;
    return one;
  });
  return { nodes: placed, width: wide, height: y + 1 };
}

/** Where each node stands: {nodes: [{…, x, y, w, h}], width, height}. Pure. */
export function layout(nodes) {
  const column = (kinds) => nodes.filter((n) => kinds.includes(n.kind)).slice(0, MAX_NODES);
  const inputs = column(["input"]), jobs = column(["job"]), outputs = column(["output", "dead letters"]), stores = column(["store"]);
  const tall = (list) => list.length * H + Math.max(0, list.length - 1) * GAP;
  const middle = tall(jobs) + 22 + (stores.length ? 34 + tall(stores) : 0);
  const height = Math.max(tall(inputs), tall(outputs), middle) + 2 * PAD;
  const placed = [];
  const stack = (list, x, y, h = H) => list.forEach((node, i) => placed.push({ ...node, x, y: y + i * (h + GAP), w: W, h }));
  stack(inputs, PAD, PAD);
  stack(jobs, PAD + W + BETWEEN, PAD, H + 22);
  stack(stores, PAD + W + BETWEEN, PAD + H + 22 + 34);
  stack(outputs, PAD + 2 * (W + BETWEEN), PAD);
  return { nodes: placed, width: 3 * W + 2 * BETWEEN + 2 * PAD, height };
}

function lines(node, rates, job, of_whom) {
  switch (node.kind) {
    case "input": return [`${node.bootstrap ? "bootstrap input" : node.broadcast ? "broadcast input" : "input"}, ${some(node.partitions, "partition")}`, node.lag == null ? "" : `behind ${some(rates.lag, "record")}`];
    case "job": return job.is_still ? ["tasks", some(job.tasks, "task"), "not running now"] : ["tasks", `${some(job.tasks, "task")} in ${some(job.containers, "container")}`, `${rate(rates.in)} · busy ${percent((rates.loop.process || 0) + (rates.loop.commit || 0))}${of_whom && ` in ${of_whom.replace(" containers", "")}`}`];
    case "store": return ["store", node.changelog ? "in a changelog" : "without a changelog"];
    case "dead letters": return ["dead letters", job.is_still ? "see Errors" : `${number(job.set_aside)} set aside`];
    default: return ["output", rate(rates.sent[node.name] || 0)];
  }
}

const cut = (text, n) => (text.length > n ? text.slice(0, n - 1) + "…" : text);

function Edge({ from, to, per_s, letters, is_stacked }) {
  const below = to.y > from.y + from.h;
  const [x1, y1, x2, y2] = to.kind === "store"
    ? [from.x + from.w / 2, from.y + from.h, to.x + to.w / 2, to.y]
    : [from.x + from.w, from.y + from.h / 2, to.x, to.y + to.h / 2];
  const [y3, y4] = [from.y + from.h / 2, to.y + to.h / 2], out = Math.max(3, SIDE - 14 - Math.abs(y4 - y3) / 14);
  const bend = is_stacked ? `M${from.x},${y3} C${out},${y3} ${out},${y4} ${to.x},${y4}` : to.kind === "store" ? `M${x1},${y1} C${x1},${y1 + 20} ${x2},${y2 - 20} ${x2},${y2}` : `M${x1},${y1} C${x1 + 60},${y1} ${x2 - 60},${y2} ${x2},${y2}`;
  const wide = per_s ? Math.min(9, 1.5 + Math.log10(1 + per_s) * 1.5) : 1.5;
  return html`<g><path d=${bend} class=${letters ? "letters" : per_s ? "" : "still"} style=${{ strokeWidth: wide }} />
    ${per_s != null && to.kind !== "store" && !is_stacked && html`<text class="rate" x=${(x1 + x2) / 2} y=${(y1 + y2) / 2 - (below ? 0 : 9)}>${rate(per_s)}</text>`}</g>`;
}

export function Graph({ graph, rates, job, of_whom = "" }) {
  const is_stacked = useNarrow(), { nodes, width, height } = is_stacked ? stacked(graph.nodes, Math.min(480, innerWidth - 58)) : layout(graph.nodes), by_id = Object.fromEntries(nodes.map((n) => [n.id, n]));
  const busy = (rates.loop.wait_output || 0) >= 0.1 ? "HELD" : (rates.loop.process || 0) + (rates.loop.commit || 0) >= 0.85 ? "BUSY" : "";
  const per_s = (edge) => (edge.to === "job" ? (edge.rate == null ? null : rates.in) : edge.to.startsWith("output ") ? rates.sent[by_id[edge.to].name] || 0 : null);
  const text = `${graph.nodes.filter((n) => n.kind === "input").map((n) => n.name).join(", ")} into ${graph.nodes.find((n) => n.kind === "job").name}, out to ${graph.nodes.filter((n) => n.kind === "output").map((n) => n.name).join(", ") || "nothing"}`;
  return html`<svg role="img" class=${is_stacked ? "stacked" : ""} aria-label=${text} width=${width} height=${height} viewBox=${`0 0 ${width} ${height}`}>
    ${graph.edges.filter((e) => by_id[e.from] && by_id[e.to]).map((e) => html`<${Edge} key=${e.from + e.to} from=${by_id[e.from]} to=${by_id[e.to]} per_s=${per_s(e)} letters=${e.to === "dead letters"} is_stacked=${is_stacked} />`)}
    ${nodes.map((n) => {
      const [kind, ...more] = lines(n, rates, job, of_whom);
      return html`<g key=${n.id} class=${`node ${n.kind === "job" ? `job ${busy}` : ""}`} transform=${`translate(${n.x},${n.y})`}>
        <rect width=${n.w} height=${n.h} rx="9" /><text class="kind" x="12" y="17">${kind}</text>
        <text class="title" x="12" y="35">${cut(n.name, 26)}<title>${n.name}</title></text>${more.map((line, i) => html`<text class="soft" x="12" y=${52 + i * 19}>${line}</text>`)}</g>`;
    })}
  </svg>`;
}
