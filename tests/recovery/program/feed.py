"""`python -m tests.recovery.program.feed SEED RECORDS`: views for the program beside it, as `samzapy chaos --input -` takes them."""

from __future__ import annotations

import json
import random
import sys

START_MS = 1_795_000_000_000
STEP_MS = 5  # at most, between two views
OUT_OF_ORDER_MS = 1500  # at most, before or after its place


def main(seed: int, records: int) -> None:
    draw, now = random.Random(seed), START_MS
    for number in range(records):
        now += draw.randint(0, STEP_MS)
        user = f"u{draw.randrange(300)}"
        view = {
            "ts": now + draw.randint(-OUT_OF_ORDER_MS, OUT_OF_ORDER_MS), "n": number, "page": f"p{draw.randrange(50)}", "user": user,
            "amount": draw.randrange(1000),
        }  # fmt: skip
        print(json.dumps({"topic": "stages-views", "key": user, "value": view}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
