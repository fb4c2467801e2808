"""`samzapy demo` at a terminal: its page is there to be looked at while the job goes on, until Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.figures import Tell
from tests.integration.processes import descendants, is_alive, until
from tests.page.browser import Watched, chromium

pytestmark = [pytest.mark.kafka, pytest.mark.prove, pytest.mark.timeout(600)]
PATIENCE_S, SEEN_S = 180.0, 3.0


class Terminal:
    """The terminal that a command runs at: what it has shown, and keys that are pressed."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self.shown = ""
        child, self._fd = pty.fork()
        if child == 0:
            os.chdir(folder)
            os.execve(sys.executable, [sys.executable, "-m", "samzapy", *words], {**os.environ, "TMPDIR": str(folder), "COLUMNS": "400"})
        self.pid = child

    def read_until(self, wanted: str) -> re.Match[str]:
        while not (found := re.search(wanted, self.shown)):
            self.read(wanted)
        return found

    def read(self, wanted: str = "") -> bool:
        """More of it; False at its end."""
        ready, _, _ = select.select([self._fd], [], [], PATIENCE_S)
        assert ready, (wanted, self.shown)
        try:
            part = os.read(self._fd, 1 << 16)
        except OSError:  # Linux: nobody has the terminal open any more
            part = b""
        self.shown += part.decode(errors="replace")
        return bool(part)

    def ctrl_c(self) -> int:
        """The exit code after it."""
        os.write(self._fd, b"\x03")
        while self.read("its end"):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_the_demo_at_a_terminal_prints_its_page_and_goes_on_until_ctrl_c(tmp_path: Path, tell: Tell) -> None:
    terminal = Terminal(["demo", "--local", "--no-open", "--sentences", "2000"], tmp_path)
    below: set[int] = set()
    try:
        found = terminal.read_until(r"page: (http://127\.0\.0\.1:\d+)/#token=(\S+)")
        url, token = found[1], found[2]
        terminal.read_until("Ctrl-C ends it")
        below = descendants(terminal.pid)
        with chromium() as browser:
            watched, began = Watched(browser), time.monotonic()
            page = watched.open(url, token)
            page.wait_for_selector("text=RUNNING")
            for words in ("sentences", "word-counts", "counts"):
                page.wait_for_selector(f".graph text.title:has-text('{words}')")
            page.wait_for_function("() => /^[1-9]/.test(document.querySelector('.tile .big').textContent)")
            seen_s = time.monotonic() - began
            tell(f"state, rate, topics, job and store were seen {seen_s:.2f} s after the page was opened")
            assert seen_s <= SEEN_S
            assert "token" not in page.url
            assert "" == page.evaluate("document.cookie")
            assert token not in " ".join(watched.asked)
            assert {url} == {re.match(r"\w+ (http://[^/]+)", line)[1] for line in watched.asked}  # type: ignore[index]
            assert [] == watched.wrong

        def counted() -> int:
            with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
                numbers = re.findall(r"^samzapy_processed_records_total\{.*\} (\d+)", answer.read().decode(), re.MULTILINE)
            return sum(map(int, numbers))

        before = counted()
        until(lambda: counted() > before, "more sentences are counted")
        logs = [file.read_text() for file in tmp_path.rglob("run.log")]
        assert 1 == len(logs)
        assert token not in logs[0]
        assert 0 == terminal.ctrl_c(), terminal.shown
        assert "stopped with exit code 0" in terminal.shown
        assert [] == [pid for pid in below if is_alive(pid)]
        assert [] == list(tmp_path.glob("samzapy-demo-*"))
    finally:
        for pid in {terminal.pid, *below}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
