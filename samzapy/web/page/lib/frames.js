// What a live frame changes. Pure: the state before and a frame in, the state after out.

const PARTS = ["rows", "containers", "cells"];

/** The state with a frame's changes; of rows, containers and cells those that are null are gone. */
export function patched(before, frame) {
  const after = { ...before, ...frame };
  for (const part of PARTS) {
    if (!(part in frame)) continue;
    const merged = { ...before[part] };
    for (const [name, value] of Object.entries(frame[part])) {
      if (value === null) delete merged[name];
      else merged[name] = value;
    }
    after[part] = merged;
  }
  delete after.news;
  return after;
}

/** Server-sent events out of the text so far: [[event, data], …] and the text that is not whole yet. */
export function events(text) {
  const blocks = text.split("\n\n");
  const rest = blocks.pop();
  const found = blocks.map((block) => {
    const lines = block.split("\n");
    const part = (name) => lines.filter((l) => l.startsWith(name + ": ")).map((l) => l.slice(name.length + 2)).join("\n");
    return [part("event"), part("data")];
  });
  return [found, rest];
}
