"""The table of error codes: `python -m samzapy.errors_table --check | --write` keeps the one in samzapy/RELIABILITY.md.

Code, class, cause and exit code are read from the classes themselves, so the page cannot say something else than the code does; only the
remedy of a whole class is written here, because each error that is raised names its own. A class without a code of its own, two classes
with one code, or a code without a remedy is an error of this module, found by its test and by `--check`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from samzapy.api.errors import SamzapyError
from samzapy.config import errors as config_errors
from samzapy.store import problems as store_problems

PAGE = Path(__file__).with_name("RELIABILITY.md")
BEGIN, END = "<!-- error codes: begin -->", "<!-- error codes: end -->"
DEFINED_IN = ("samzapy.api.errors", config_errors.__name__, store_problems.__name__)

REMEDIES = {
    "SZ000": "read the message: every error that is raised is of one of the kinds below",
    "SZ100": "mend the job file or the command as the message says; `samzapy validate JOB.yaml` shows all of it",
    "SZ101": "mend every place that is listed, they are all there; `samzapy validate JOB.yaml` checks again",
    "SZ110": "change it back, give the job a new `id`, or `samzapy reset JOB.yaml` to start over",
    "SZ200": "mend the task at the line named, or let `on_error` pass such records by",
    "SZ210": "name the serde that wrote the topic, or let `on_error` pass such records by",
    "SZ211": "put or send less, or raise the topic's `max.message.bytes`",
    "SZ212": "use a store in its own task only, and write before `close()`",
    "SZ213": "add the topic under `outputs:`",
    "SZ300": "see the brokers' logs; a container starts over from what is committed",
    "SZ301": "check `kafka.bootstrap.servers`, that the brokers run, and the network; `samzapy doctor JOB.yaml`",
    "SZ302": "create it; `samzapy topics JOB.yaml` shows what is missing, `--create` makes what samzapy may make",
    "SZ303": "set what the message names with Kafka's own tools; samzapy never alters a topic that exists",
    "SZ304": "`samzapy validate JOB.yaml --connect` names what is not allowed, with the line that allows it; `samzapy topics JOB.yaml --acls` all",
    "SZ305": "check `sasl.username`, `sasl.password` and `sasl.mechanism` in `kafka:`",
    "SZ306": "as the message says: `ssl.ca.location`, the broker's name in `bootstrap.servers`, its certificate, or `security.protocol`",
    "SZ310": "none: the records are read again; if it ends the job, the message names what the broker refused",
    "SZ315": "none where `on_error` lets the record pass by; else mend the record that the message names, or what the topic takes",
    "SZ311": "none: the container starts over from what Kafka says",
    "SZ312": "none: the container asks who owns its tasks, and starts over or exits",
    "SZ313": "none: the owner goes on; nothing that this one had not committed was visible",
    "SZ314": "`samzapy stop JOB.yaml`, or `samzapy run JOB.yaml --takeover` to take its place",
    "SZ320": "set the input's `on_out_of_range` to go on and lose what is missing, or `samzapy reset JOB.yaml`",
    "SZ330": "believe it; bring back what the message names, or `samzapy reset JOB.yaml` to start over",
    "SZ340": "see the log lines of that container above; `samzapy doctor JOB.yaml` for Java, Spark and slots",
    "SZ350": "make room where the output goes, or send it elsewhere, and run the command again",
    "SZ400": "see that `state.dir` can be written and that the limit of open files is not reached",
    "SZ401": "wait until the process that has it open has ended",
    "SZ402": "none: it is set aside and restored from its changelog",
    "SZ403": "make room, or choose another `state.dir`; nothing committed is lost",
    "SZ900": "report it with the log; restarting is safe, only committed work is kept",
}


class Row(NamedTuple):
    """One code. `name`: the class, or in brackets who gives the code without one; `cause`: the first sentence of what it says of itself."""

    code: str
    name: str
    cause: str
    remedy: str
    exit_code: int


# Codes that are given without raising their class, with another meaning or exit code than it has.
AD_HOC = (
    Row(
        "SZ340", "(coordinator)", "A container died more often than `containers.max_restarts` in `containers.restart_window`",
        "see the deaths that the message lists, and that container's log lines", 1,
    ),
)  # fmt: skip


def rows() -> list[Row]:
    """Every code, in order.

    Raises:
        ValueError: a class has no code of its own, two have the same one, a code has no remedy or a remedy no code; all are named.
    """
    classes = sorted(_family(SamzapyError), key=lambda c: (c.code, c.__name__))
    wrong = [f"{c.__name__} has no code of its own" for c in classes if "code" not in vars(c)]
    codes = [c.code for c in classes if "code" in vars(c)]
    wrong += [f"{code} is the code of several classes" for code in sorted(set(codes)) if codes.count(code) > 1]
    wrong += [f"{code} has no remedy in samzapy/errors_table.py" for code in sorted(set(codes) - set(REMEDIES))]
    wrong += [f"{code} has a remedy in samzapy/errors_table.py and no class" for code in sorted(set(REMEDIES) - set(codes))]
    if wrong:
        raise ValueError("; ".join(wrong))
    raised = [Row(c.code, c.__name__, _first_sentence(c.__doc__ or ""), REMEDIES[c.code], c.exit_code) for c in classes]
    return sorted([*raised, *AD_HOC], key=lambda row: (row.code, row.name.startswith("(")))


def _family(root: type[SamzapyError]) -> Iterator[type[SamzapyError]]:
    """`root` and what comes from it in the modules that define errors; others (those of tests, of users) are none of ours."""
    if root.__module__ in DEFINED_IN:
        yield root
    for below in root.__subclasses__():
        yield from _family(below)


def _first_sentence(text: str) -> str:
    sentence = " ".join(text.split("\n\n")[0].split())
    return sentence.partition(". ")[0].removesuffix(".")


def markdown() -> str:
    """The table, as it stands between the marks."""
    lines = ["| code | class | cause | remedy | exit |", "|---|---|---|---|---|"]
    lines += [
        f"| {r.code} | {r.name if r.name.startswith('(') else f'`{r.name}`'} | {_cell(r.cause)} | {_cell(r.remedy)} | {r.exit_code} |"
        for r in rows()
    ]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def written(page: str) -> str:
    """The page with the table of now between its marks.

    Raises:
        ValueError: the marks are not there, once each and in order.
    """
    before, begin, rest = page.partition(BEGIN + "\n")
    _, end, after = rest.partition(END)
    if not begin or not end or BEGIN in after or END in before + after:
        raise ValueError(f"{PAGE.name} must have the lines {BEGIN} and {END}, once each")
    return before + begin + markdown() + end + after


def main(arguments: list[str]) -> int:
    """Check or write the table of the page beside this module."""
    if arguments not in (["--check"], ["--write"]):
        sys.stderr.write("usage: python -m samzapy.errors_table --check | --write\n")
        return 2
    page = PAGE.read_text(encoding="utf-8")
    made = written(page)
    if arguments == ["--write"]:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    if page != made:
        sys.stderr.write(f"{PAGE.name} is out of date: run python -m samzapy.errors_table --write\n")
    return int(page != made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
