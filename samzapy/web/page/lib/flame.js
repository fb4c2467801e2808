// A profile as a flame graph: a box for each frame, as wide as its share of the time; callers above, what they call below.

import { useState } from "../vendor/hooks.js";
import { percent } from "./format.js";
import { html } from "./parts.js";

const ROW = 19, LETTER = 7, LEAST = 0.0015;

/** The tree of folded stacks, a line each: "frame;frame microseconds". Pure. */
export function tree(folded) {
  const root = { name: "all", us: 0, below: new Map() };
  for (const line of folded.split("\n")) {
    const cut = line.lastIndexOf(" "), us = Number(line.slice(cut + 1));
    if (cut < 1 || !(us >= 0)) continue;
    let at = root;
    root.us += us;
    for (const name of line.slice(0, cut).split(";")) {
      if (!at.below.has(name)) at.below.set(name, { name, us: 0, below: new Map() });
      at = at.below.get(name);
      at.us += us;
    }
  }
  return root;
}

/** Functions by the time that is their own, the largest first: [{name, own, whole}], shares of 1. Pure. */
export function functions(root, most = 12) {
  const found = new Map();
  const walk = (node, above) => {
    const is_line = node.name.startsWith("line ");
    let own = node.us;
    for (const child of node.below.values()) {
      if (!child.name.startsWith("line ")) own -= child.us;
      walk(child, is_line ? above : [...above, node.name]);
    }
    if (is_line || node === root) return;
    const row = found.get(node.name) || { name: node.name, own: 0, whole: 0 };
    row.own += own / root.us;
    if (!above.includes(node.name)) row.whole += node.us / root.us;
    found.set(node.name, row);
  };
  walk(root, []);
  return [...found.values()].filter((f) => f.own >= 0.005 || f.whole >= 0.05).sort((a, b) => b.own - a.own || b.whole - a.whole).slice(0, most);
}

/** The boxes of a tree: [{name, path, x, y, w, share}], x and w of 1, y in rows; at most two thousand. Pure. */
export function boxes(root, zoom = []) {
  const made = [];
  let at = root;
  const whole = root.us || 1;
  zoom.forEach((name, depth) => {
    at = at.below.get(name) || at;
    made.push({ name, path: zoom.slice(0, depth + 1), x: 0, y: depth, w: 1, share: at.us / whole });
  });
  const draw = (node, path, x, depth) => {
    for (const child of [...node.below.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const w = child.us / (at.us || 1);
      if (w >= LEAST && made.length < 2000) {
        made.push({ name: child.name, path: [...path, child.name], x, y: depth, w, share: child.us / whole });
        draw(child, made[made.length - 1].path, x, depth + 1);
      }
      x += w;
    }
  };
  draw(at, zoom, 0, zoom.length);
  return made;
}

const hue = (name) => [...name].reduce((sum, letter) => (sum * 31 + letter.codePointAt(0)) % 997, 7) % 5;
const brief = (name) => name.split(":").pop();

export function Flame({ root, wide }) {
  const [zoom, setZoom] = useState([]);
  const made = boxes(root, zoom), rows = made.reduce((most, b) => Math.max(most, b.y), 0) + 1;
  const pick = (box) => setZoom(box.path.length === zoom.length ? box.path.slice(0, -1) : box.path);
  return html`<div>
    <p class="soft">Click a box, or press Enter on it, to see only that function and what it calls${zoom.length ? html` · <button class="plain" onClick=${() => setZoom([])}>show all</button>` : ""}</p>
    <svg class="flame" width=${wide} height=${rows * ROW} viewBox=${`0 0 ${wide} ${rows * ROW}`} role="group" aria-label="flame graph; the table has the same in numbers">
      ${made.map((b) => {
        const text = b.w * wide > 4 * LETTER ? brief(b.name) : "", letters = Math.floor((b.w * wide - 6) / LETTER), is_wide = b.w >= 0.02;
        return html`<g key=${b.path.join(";")} class=${`f${hue(b.name)}`} role="button" tabindex=${is_wide ? 0 : undefined} aria-label=${`${b.name}, ${percent(b.share)}`} onClick=${() => pick(b)} onKeyDown=${(e) => e.key === "Enter" && pick(b)}>
          <title>${`${b.name}: ${(100 * b.share).toFixed(1)} %`}</title>
          <rect x=${b.x * wide} y=${b.y * ROW} width=${Math.max(0.5, b.w * wide - 1)} height=${ROW - 1} rx="2" />
          ${text && html`<text x=${b.x * wide + 4} y=${b.y * ROW + 13} aria-hidden="true">${text.length > letters ? text.slice(0, Math.max(1, letters - 1)) + "…" : text}</text>`}</g>`;
      })}
    </svg></div>`;
}
