"""What others wrote does nothing to a terminal, wherever samzapy shows it."""

from __future__ import annotations

import io
import json
import logging
import secrets
import sys
import unicodedata
from pathlib import Path

import pytest

from samzapy.cli.common import print_json, say
from samzapy.cli.inspect import _print_status
from samzapy.cli.main import PrintableLines, exit_code
from samzapy.cli.output import checked_output
from samzapy.cli.tables import print_table
from samzapy.container.process import log_to_stderr
from samzapy.printable import UNSEEN, printable, printable_json, printable_lines
from tests.integration.job import Job

# clears the screen, sets a title, C1's CSI, deletes, turns the line around, hides, ends the line, joins, is half a character, is a tag
BAD = "a\x1b[2J\x1b]0;x\x07\x9b2J\x08\x7f\u202e\u2066\u200b\u200f\u2028\u2029\ufeff\r\ud800\U000e0041b"
HARMLESS = "naïve — 日本語 🙂 \u00a0 \\x1b"


def is_safe(text: str, keep: str = "\n\t") -> bool:
    return all(c in keep or unicodedata.category(c) not in UNSEEN for c in text)


def test_every_character_that_is_not_seen_is_escaped_and_no_other() -> None:
    assert HARMLESS == printable(HARMLESS)
    assert "\\x1b[2J \\u202e \\x9b \\n \\U000e0041" == printable("\x1b[2J \u202e \x9b \n \U000e0041")
    assert "a\n\tb\\r" == printable_lines("a\n\tb\r")
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert is_safe(printable(every), "")
    assert printable(printable(every)) == printable(every)


def test_json_stays_the_same_document() -> None:
    document = {BAD: [BAD, {"k": HARMLESS, "n": 1.5}], "plain": "x"}
    text = printable_json(json.dumps(document, ensure_ascii=False))
    assert is_safe(text, "")
    assert document == json.loads(text)
    assert HARMLESS.replace("\\", "\\\\") in text


def test_tables_sentences_documents_and_whatever_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with checked_output():
        print_table(("KEY", "N"), [(BAD + "\n", 1), ("b", None)])
        print_json({"k": BAD})
        print(BAD)
        say(BAD)
        print(BAD, file=sys.stderr)
    out, err = capsys.readouterr()
    assert is_safe(out)
    assert is_safe(err)
    assert 5 == len(out.splitlines())
    assert BAD == json.loads(out.splitlines()[3])["k"]
    assert "\\u202e" in err


def test_status_of_a_job_whose_partitions_and_reasons_are_named_so(capsys: pytest.CaptureFixture[str]) -> None:
    hint = {"severity": "act", "sentence": f"the key {BAD}", "remedy": f"mend {BAD}"}
    restart = {"at_ms": 0, "process": "process 1", "reason": f"killed by {BAD}"}
    container = {
        "id": 0, "state": "RUNNING", "host": f"h{BAD}", "preferred_host": BAD, "pid": 1, "restarts": 1, "tasks": ["t"], "reason": BAD, "last_restart": restart,
    }  # fmt: skip
    task = {"name": f"Partition {BAD}", "state": "RUNNING", "container": 0, "lag": 1, "processed": 1, "stores": {}, "reason": f"key {BAD}"}
    task |= {"dead_letters": 1, "skipped": 1}
    status = {"job": "j", "id": "1", "state": "RUNNING", "run_id": "r", "coordinator": BAD, "reason": BAD, "notes": [BAD], "hints": [hint]}
    with checked_output():
        _print_status({**status, "containers": [container], "tasks": [task]})
    out = capsys.readouterr().out
    assert is_safe(out)
    assert 13 == out.count("\\u202e"), "once where each of these texts is shown, and the task's name in three places"


@pytest.mark.parametrize("arguments", [["run", BAD.replace("\ud800", "")], [BAD], ["status", "x.yaml", "--" + BAD]])
def test_errors_of_the_command_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 != exit_code(arguments)
    out, err = capsys.readouterr()
    assert is_safe(out + err)
    assert "\\x1b" in err


def test_log_lines_of_driver_and_container(monkeypatch: pytest.MonkeyPatch) -> None:
    record = logging.LogRecord("samzapy", logging.WARNING, "file", 1, "key %s", (BAD,), None)
    assert is_safe(PrintableLines("%(message)s").format(record))
    root, stream = logging.getLogger(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    before = root.handlers[:], root.level
    try:
        log_to_stderr({}, "container 0 | ")
        logging.getLogger("samzapy").warning("key %s", BAD)
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
    assert "\\u202e" in stream.getvalue()
    assert is_safe(stream.getvalue())


@pytest.mark.kafka
def test_a_running_job_and_what_it_left_show_nothing_raw(kafka: str, tmp_path: Path) -> None:
    word = BAD.replace("\ud800", "").replace("\r", "").replace("\u2028", "").replace("\u2029", "")  # `split` of the task parts at these
    job = Job(kafka, tmp_path, f"job-{secrets.token_hex(4)}", partitions=1, on_error={"then": "dead_letter"}, task="Counting")
    file = tmp_path / f"task_{job.name.replace('-', '_')}.py"
    file.write_text(file.read_text().replace('raise ValueError("boom!")', "raise ValueError(envelope.message)"))
    job.feed([word, f"boom {word}"])
    ran = job.run_to_end()
    assert ran.returncode == 0, ran.stderr
    shown = [
        job.of("state", "scan", "counts"),
        job.of("state", "export", "counts", "--json"),
        job.command("dlq", "show", str(job.file), "0.0"),
        job.command("tail", job.output, "--kafka", kafka, "--key-serde", "string", "--value-serde", "integer"),
    ]
    for done in (ran, *shown):
        assert is_safe(done.stdout + done.stderr), done.args
        assert "\\x1b[2J" in done.stdout + done.stderr or "\\u001b[2J" in done.stdout, (done.args, done.stdout, done.stderr)
    assert word in [json.loads(line)["key"] for line in shown[1].stdout.splitlines()]
