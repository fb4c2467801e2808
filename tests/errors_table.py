"""The table of error codes: `python -m tests.errors_table --check | --write` keeps the one in samzapy/RELIABILITY.md.

Code, class, cause and exit code are read from the classes, so the page cannot differ from the code. Only the generic remedy of each
class is written here; each error that is raised has a specific one. A class without its own code, two classes with the same code, or a
code without a remedy is an error, found by the test of this module and by `--check`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import samzapy
from samzapy.api.errors import SamzapyError
from samzapy.config import errors as config_errors
from samzapy.store import problems as store_problems

PAGE = Path(samzapy.__file__).with_name("RELIABILITY.md")
BEGIN, END = "<!-- error codes: begin -->", "<!-- error codes: end -->"
DEFINED_IN = ("samzapy.api.errors", config_errors.__name__, store_problems.__name__)

REMEDIES = {
    "SZ000": "read the message: every error that is raised belongs to one of the classes below",
    "SZ100": "fix the job file or the command as the message says; `samzapy validate JOB.yaml` lists all problems",
    "SZ101": "fix every listed line; the list is complete; `samzapy validate JOB.yaml` checks again",
    "SZ110": "undo the change, give the job a new `id`, or run `samzapy reset JOB.yaml` to begin with empty state",
    "SZ200": "fix the task at the line named, or skip such records with `on_error`",
    "SZ210": "use the serde that wrote the topic, or skip such records with `on_error`",
    "SZ211": "put or send less, or raise the topic's `max.message.bytes`",
    "SZ212": "use a store only in its own task's hooks, and write before `close()`",
    "SZ213": "add the topic under `outputs:`",
    "SZ214": "let the class read what it wrote before (defaults, or `upgrade`), or use the class or serde that wrote it",
    "SZ300": "see the brokers' logs; a container continues from the last commit",
    "SZ301": "check `kafka.bootstrap.servers` (or `spark.master`), the brokers and the network; `samzapy doctor JOB.yaml` helps",
    "SZ302": "create it; `samzapy topics JOB.yaml` lists what is missing, `--create` creates what samzapy may create",
    "SZ303": "with Kafka's own tools, change the setting that the message names; samzapy never changes the settings of an existing topic",
    "SZ304": "`samzapy validate JOB.yaml --connect` names each missing permission and the command that grants it; `samzapy topics JOB.yaml --acls` lists all",
    "SZ305": "check `sasl.username`, `sasl.password` and `sasl.mechanism` in `kafka:`",
    "SZ306": "as the message says: `ssl.ca.location`, the broker's name in `bootstrap.servers`, its certificate, or `security.protocol`",
    "SZ307": "start the broker that holds the partition; a running job goes on by itself",
    "SZ308": "check `schema_registry.url` and the registry; a running job goes on by itself",
    "SZ310": "none: the records are read again; if the job ends, the message names what the broker refused",
    "SZ316": "set this host's clock, or the broker's; `date -u` on both shows which is wrong. The job goes on from the last commit",
    "SZ315": "none if `on_error` skips the record; otherwise fix the record that the message names, or the topic's limits",
    "SZ311": "none: the container starts over from the last commit",
    "SZ312": "none: the container reads who owns its tasks, and starts over or exits",
    "SZ313": "none: the owner continues; uncommitted work of this one was never visible",
    "SZ314": "stop it with `samzapy stop JOB.yaml`, or replace it with `samzapy run JOB.yaml --takeover`",
    "SZ321": "allow more memory for a batch with `kafka: {receive.message.max.bytes: 1000000000}`, or skip the whole batch, its good records too, with `on_error`",
    "SZ320": "set the input's `on_out_of_range`, which skips the missing records, or choose where the job goes on with `samzapy checkpoint set JOB.yaml`",
    "SZ322": "none: the container is started again with the current code; `samzapy restart JOB.yaml` gives it to all containers",
    "SZ330": "do not work around this: continuing would double-count or lose keys; recover what the message names, or run `samzapy reset JOB.yaml`",
    "SZ340": "see the log lines of the container that the message names; `samzapy doctor JOB.yaml` checks Java, Spark and slots",
    "SZ350": "free some space, or redirect the output, and run the command again",
    "SZ400": "check that `state.dir` is writable and that the limit of open files is not reached",
    "SZ401": "wait until the process that uses the store has ended; `samzapy stop JOB.yaml` ends a run of this job in order",
    "SZ402": "none: it is set aside and restored from its changelog",
    "SZ403": "free some space, or choose another `state.dir`; nothing committed is lost",
    "SZ900": "report it with the log; restarting is safe, only committed work is kept",
}


class Row(NamedTuple):
    """One code. `name`: the class, or in parentheses the component that reports the code; `cause`: the first sentence of the docstring."""

    code: str
    name: str
    cause: str
    remedy: str
    exit_code: int


# Codes that a component reports without raising the class, with a different meaning or exit code.
AD_HOC = (
    Row(
        "SZ340", "(coordinator)", "A container died more often than `containers.max_restarts` in `containers.restart_window`",
        "see the deaths listed in the message, and that container's log lines", 1,
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
    wrong += [f"{code} has no remedy in tests/errors_table.py" for code in sorted(set(codes) - set(REMEDIES))]
    wrong += [f"{code} has a remedy in tests/errors_table.py and no class" for code in sorted(set(REMEDIES) - set(codes))]
    if wrong:
        raise ValueError("; ".join(wrong))
    raised = [Row(c.code, c.__name__, _first_sentence(c.__doc__ or ""), REMEDIES[c.code], c.exit_code) for c in classes]
    return sorted([*raised, *AD_HOC], key=lambda row: (row.code, row.name.startswith("(")))


def _family(root: type[SamzapyError]) -> Iterator[type[SamzapyError]]:
    """`root` and what comes from it in the modules that define errors; not those of tests or users."""
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
    """The page with the current table between its marks.

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
        sys.stderr.write("usage: python -m tests.errors_table --check | --write\n")
        return 2
    page = PAGE.read_text(encoding="utf-8")
    made = written(page)
    if arguments == ["--write"]:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    if page != made:
        sys.stderr.write(f"{PAGE.name} is out of date: run python -m tests.errors_table --write\n")
    return int(page != made)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
