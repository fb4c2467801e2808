"""The rows of the table that show what the job's topics hold."""

from __future__ import annotations

from samzapy.web import schemas_contents as s
from samzapy.web.access import May
from samzapy.web.route import J, Query, Route

VIEW, OPERATE = May.VIEW, May.OPERATE
OF_LETTERS = (
    Query("task", str, "", "Only of this task."),
    Query("topic", str, "", "Only from this input."),
    Query("error", str, "", "Only those whose error contains this text."),
    Query("find", str, "", "Only those with this text in error, task, origin, or beginning of key or value."),
    Query("state", str, "waiting", "Only those that were neither sent back nor discarded, or all.", choices=("waiting", "all")),
    Query("limit", int, 50, "How many at most.", 1, 500),
    Query("offset", int, 0, "How many to pass over; `next` has it for the next page.", 0, 1_000_000),
)
OF_RECORDS = (
    Query("partition", str, "", "Only of the partition of this number; without it, of all."),
    Query("from", str, "last", "Where to begin, without a cursor: the newest ones, the oldest, or those to come.", choices=("last", "first", "now")),
    Query("after", str, "", "A cursor: `next` of the answer before.", longest=4000),
    Query("contains", str, "", "Only those with this text in key or value."),
    Query("limit", int, 50, "How many at most.", 1, 500),
)
AGAINST = Query("against", str, "before", "Whose configuration to compare with: the run before (before), the job file as it is now (file), or a run's id.")
CONTENTS: tuple[Route, ...] = (
    Route("GET", f"{J}/topics", "topics", VIEW, "The topics whose records can be read", s.Topics, lambda a: a.contents.tap.topics()),
    Route("GET", f"{J}/topics/{{topic}}/records", "records", VIEW, "Records of an input or output, by the job's serdes; changes nothing in Kafka",
          s.Records, lambda a: a.contents.tap.records(a.path["topic"], a.query), OF_RECORDS, of_records=True),
    Route("GET", f"{J}/runs", "runs", VIEW, "The last ten runs", s.Runs, lambda a: a.contents.runs.rows()),
    Route("GET", f"{J}/runs/{{run}}", "run", VIEW, "A run, and what its configuration changed", s.ShownRun,
          lambda a: a.contents.runs.one(a.path["run"], a.query["against"]), (AGAINST,)),
    Route("GET", f"{J}/dead-letters", "dead-letters", VIEW, "The newest dead letters", s.DeadLetters, lambda a: a.contents.letters.rows(a.query), OF_LETTERS,
          of_records=True),
    Route("GET", f"{J}/dead-letters/{{which}}", "dead-letter", VIEW, "A dead letter with its record: by its number, or as TOPIC[PARTITION]@OFFSET",
          s.ShownDeadLetter, lambda a: a.contents.letters.one(a.path["which"]), of_records=True),
    Route("POST", f"{J}/dead-letters/replay", "replay", OPERATE, "Send records back to where they came from, each at most once", s.Dealt,
          lambda a: a.contents.letters.replay(a.body, a.by), (), s.Replay, of_records=True),
    Route("POST", f"{J}/dead-letters/discard", "discard", OPERATE, "Mark dead letters as not needed", s.Dealt,
          lambda a: a.contents.letters.discard(a.body, a.by), (), s.Discard, of_records=True),
)  # fmt: skip
