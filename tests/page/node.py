"""The page's own code outside of a browser: its files as modules of node, which comes with playwright."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import playwright

from samzapy.web.files import PAGE

# What the files expect of a browser, and a clock that a test puts forward: `await go(ms)` lets that much time pass, with all that is due in it.
BROWSER = """
globalThis.location = { hash: "", pathname: "/" };
globalThis.sessionStorage = { getItem: () => "t", setItem() {} };
globalThis.history = { replaceState() {} };
globalThis.document = { visibilityState: "visible", body: {}, querySelectorAll: () => [] };
globalThis.matchMedia = () => ({ matches: false, addEventListener() {} });
globalThis.MutationObserver = class { observe() {} };
let time = 1.7e12, id = 0, due = new Map();
Date.now = () => time;
globalThis.setTimeout = (call, ms = 0) => (due.set(++id, { at: time + ms, call }), id);
globalThis.setInterval = (call, ms) => (due.set(++id, { at: time + ms, call, ms }), id);
globalThis.clearTimeout = globalThis.clearInterval = (which) => void due.delete(which);
const settled = async () => { for (let i = 0; i < 50; i++) await new Promise((later) => setImmediate(later)); };
async function go(ms) {
  const until = time + ms;
  for (await settled(); ; await settled()) {
    const [which, next] = [...due].sort((a, b) => a[1].at - b[1].at)[0] || [];
    if (!next || next.at > until) break;
    time = Math.max(time, next.at);
    next.ms ? (next.at += next.ms) : due.delete(which);
    next.call();
  }
  time = until;
}
let result;
"""


def node() -> Path:
    """The node that playwright brings, which requirements-dev.lock installs: without it the tests fail."""
    found = Path(playwright.__file__).parent / "driver" / "node"
    assert found.is_file(), f"{found} is missing: make dev"
    return found


def run(tmp_path: Path, code: str) -> Any:
    """What `code` has put into `result`. It imports the page's files as `./page/lib/….js`."""
    shutil.copytree(PAGE, tmp_path / "page")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    file = tmp_path / "test.js"
    file.write_text(f"{BROWSER}\n{code}\nconsole.log(JSON.stringify(result));\nprocess.exit(0);\n")
    done = subprocess.run([node(), file], capture_output=True, text=True, check=False, timeout=60)
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)
