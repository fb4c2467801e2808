"""W2 with Quix Streams: count and sum of each user, an update for each record. Runs in an environment of its own."""

import sys

from quixstreams import Application

servers, given, output, folder = sys.argv[1:]
app = Application(
    broker_address=servers, consumer_group=output, auto_offset_reset="earliest", processing_guarantee="exactly-once", state_dir=folder, commit_interval=1.0,
    loglevel="WARNING",
)  # fmt: skip


def count(record, state):
    totals = state.get("totals", {"c": 0, "s": 0.0})
    totals = {"c": totals["c"] + 1, "s": totals["s"] + record["amount"]}
    state.set("totals", totals)
    return {"user": record["user"], **totals}


frame = app.dataframe(app.topic(given, key_deserializer="bytes", value_deserializer="json"))
frame = frame.apply(count, stateful=True)
frame.to_topic(app.topic(output, key_serializer="bytes", value_serializer="json"))
app.run(timeout=8.0)
