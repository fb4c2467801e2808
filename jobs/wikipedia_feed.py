"""Lines for the topic `wikipedia-feed`: of the real feed where the file is there, else of the same shape, made here.

The file is the one that the environment variable SAMZAPY_WIKIPEDIA_FILE names, or `../shared/data/wikipedia-raw.jsonl` beside the
checkout: a JSON object a line with `channel`, `raw` (the IRC line), `source`, `time` (ms).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path

import orjson

BESIDE = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "wikipedia-raw.jsonl"
VARIABLE = "SAMZAPY_WIKIPEDIA_FILE"
START_MS = 1_400_000_000_000

TITLES = (
    "Amber", "Bridge of Sighs", "Cello", "Delta (letter)", "Émile Zola", "Fjord", "Glacier", "Harbour", "Ink", "Jasmine", "Kettle", "Łódź",
    "Talk:Amber", "Talk:Fjord", "User talk:Norma", "Special:Sandbox", "日本", "List of rivers of Norway", "Template:Infobox * bridge",
    "C (language)",
)  # fmt: skip
USERS = ("Norma", "Otto B.", "PatrolBot", ".0.113.7", "Ünal")
FLAGS = ("", "", "", "", "M", "M", "MB", "B", "N", "!N", "!", "NB")
SUMMARIES = ("", "typo", "/* History */ a source", "Reverted (see [[WP:AGF]])", "→ moved", 'said "so"')
LOGS = (
    "[[Special:Log/newusers]] create  * {user} *  new user account",
    "[[Special:Log/move]] move  * {user} *  moved [[{title}]] to [[{title} (old)]]",
    "[[Special:Log/block]] block  * {user} *  blocked User:{user} (anon. only) with an expiry time of 48 hours",
)


def feed_file(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The real feed, where it is there.

    Raises:
        FileNotFoundError: the variable names a file that is not there.
    """
    named = environ.get(VARIABLE)
    if named:
        if not Path(named).is_file():
            raise FileNotFoundError(f"{VARIABLE} is {named}, which is no file. Unset it to use generated lines.")
        return Path(named)
    return BESIDE if BESIDE.is_file() else None


def lines(environ: Mapping[str, str] = os.environ, count: int = 1000, seed: int = 0) -> Iterator[bytes]:
    """The feed's lines; `count` generated ones where there is no file."""
    path = feed_file(environ)
    if path is None:
        yield from generated_lines(count, seed)
        return
    with path.open("rb") as file:
        for line in file:
            yield line.rstrip(b"\r\n")


def generated_lines(count: int, seed: int = 0) -> Iterator[bytes]:
    """So many lines, always the same for a seed: edits, some log lines, now and then something broken."""
    choose = random.Random(seed)
    for number in range(count):
        title, user = choose.choice(TITLES), choose.choice(USERS)
        fate = choose.random()
        if fate < 0.07:
            raw = choose.choice(LOGS).format(user=user, title=title)
        else:
            url = f"http://en.wikipedia.org/w/index.php?diff={1000 + number}&oldid={900 + number}"
            diff = choose.choice((0, 1, -1, choose.randint(-5000, 20000)))
            raw = f"[[{title}]] {choose.choice(FLAGS)} {url} * {user} * ({diff:+d}) {choose.choice(SUMMARIES)}"
        line = orjson.dumps({"raw": raw, "time": START_MS + 300 * number, "source": "rc-pmtpa", "channel": "#en.wikipedia"})
        yield line[: len(line) // 2] if fate > 0.99 else line


def records(environ: Mapping[str, str] = os.environ, count: int = 1000, seed: int = 0) -> Iterator[tuple[bytes | None, bytes]]:
    """The lines as records of the topic `wikipedia-feed`: no key, the line as the value."""
    for line in lines(environ, count, seed):
        yield None, line
