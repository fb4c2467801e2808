"""W2 with Bytewax: count and sum of each user, an update for each record. State is in memory, with snapshots. Runs in an environment of its own."""

import json
import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage
from bytewax.connectors.kafka import operators as kop
from bytewax.dataflow import Dataflow

servers, given, output = os.environ["PEER_SERVERS"].split(","), os.environ["PEER_INPUT"], os.environ["PEER_OUTPUT"]
options = {"queued.min.messages": "50000", "fetch.queue.backoff.ms": "5"}


def count(totals, record):
    count, total = totals or (0, 0.0)
    totals = count + 1, total + record["amount"]
    return totals, {"user": record["user"], "c": totals[0], "s": totals[1]}


def sent(item):
    key, update = item
    return KafkaSinkMessage(key.encode(), json.dumps(update).encode())


flow = Dataflow("w2")
read = kop.input("read", flow, brokers=servers, topics=[given], tail=False, batch_size=1000, add_config=options)
keyed = op.map("decode", read.oks, lambda message: (message.key.decode(), json.loads(message.value)))
updates = op.stateful_map("count", keyed, count)
kop.output("write", op.map("encode", updates, sent), brokers=servers, topic=output, add_config={"partitioner": "murmur2_random"})
