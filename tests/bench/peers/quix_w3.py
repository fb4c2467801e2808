"""W3 with Quix Streams: counts per page in windows of ten seconds of event time, final results. Runs in an environment of its own."""

import sys

import quixstreams.dataframe.windows.aggregations as agg
from quixstreams import Application

servers, given, output, folder = sys.argv[1:]
app = Application(
    broker_address=servers, consumer_group=output, auto_offset_reset="earliest", processing_guarantee="exactly-once", state_dir=folder,
    commit_interval=1.0, loglevel="WARNING",
)  # fmt: skip

topic = app.topic(given, key_deserializer="bytes", value_deserializer="json", timestamp_extractor=lambda value, *_: value["ts"])
frame = app.dataframe(topic).group_by("page", key_serializer="str", key_deserializer="str")
windows = frame.tumbling_window(10_000, grace_ms=1_000, on_late=lambda *_: False)  # False: a late record is not logged, only dropped
frame = windows.agg(count=agg.Count()).final()
frame = frame.apply(lambda pane, key, *_: {"page": key, "start": pane["start"], "count": pane["count"]}, metadata=True)
frame.to_topic(app.topic(output, key_serializer="str", value_serializer="json"))
app.run(timeout=8.0)
