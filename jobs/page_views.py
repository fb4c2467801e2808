"""Page views enriched with the user that each belongs to.

`users` is a bootstrap stream: it is read to its end, into the store of the same name, before the first page view. After that its changes
apply in the order in which they are read; a tombstone removes the user. A page view of nobody known is passed on, and says so.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from samzapy import IncomingMessageEnvelope, KeyValueStore, StreamTask, TaskContext, TaskCoordinator
from samzapy.api.context import MessageCollector

USERS = "users"
ENRICHED = "page-views-enriched"


def enriched(user_id: str | None, view: Mapping[str, Any], user: Mapping[str, Any] | None) -> dict[str, Any]:
    """The page view with its user: `{…the view's fields, "user_id", "known_user", "user"}`."""
    return {**view, "user_id": user_id, "known_user": user is not None, "user": user}


class PageViewEnricher(StreamTask[str | None, Any]):
    """Joins `page-views` with the store that `users` feeds. Metrics: `unknown_users`, and `malformed`: no JSON object, passed by."""

    def init(self, context: TaskContext) -> None:
        self.users: KeyValueStore[str, dict[str, Any]] = context.get_store("users")
        self.unknown = context.metrics.counter("unknown_users")
        self.malformed = context.metrics.counter("malformed")

    def process(
        self, envelope: IncomingMessageEnvelope[str | None, Any], collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        if envelope.stream == USERS:
            self._learn(envelope.key, envelope.message)
        elif isinstance(envelope.message, dict):
            user = None if envelope.key is None else self.users.get(envelope.key)
            if user is None:
                self.unknown.inc()
            collector.send(ENRICHED, enriched(envelope.key, envelope.message, user), key=envelope.key)
        else:
            self.malformed.inc()

    def _learn(self, user_id: str | None, user: object) -> None:
        if user_id is not None and (user is None or isinstance(user, dict)):
            self.users.put(user_id, user)  # None, a tombstone, deletes
        else:
            self.malformed.inc()


# -- users and views to join -------------------------------------------------------------------------------------------------------

NAMES = ("Ada", "Bo", "Chen", "Dara", "Emil", "Fatou", "Grace", "Håkon", "Inés", "Jun")
COUNTRIES = ("DE", "IN", "KE", "NO", "PE", "VN")
PAGES = ("/", "/about", "/cart", "/help", "/item/1", "/item/2", "/search")
START_MS = 1_400_000_000_000


def users(count: int, seed: int = 0) -> Iterator[tuple[bytes, bytes | None]]:
    """Records of `users`: each user once, some changed later, and every tenth deleted again at the end."""
    choose = random.Random(seed)
    ids = [f"u{number}" for number in range(count)]
    changed = choose.sample(ids, count // 5)
    for user_id in [*ids, *changed]:
        profile = {"name": choose.choice(NAMES), "country": choose.choice(COUNTRIES), "level": choose.randint(1, 9)}
        yield user_id.encode(), orjson.dumps(profile)
    for user_id in ids[::10]:
        yield user_id.encode(), None


def page_views(count: int, of_users: int, seed: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Records of `page-views`; one in twenty or so is of a user that never was."""
    choose = random.Random(seed)
    for number in range(count):
        user_id = f"u{choose.randrange(max(1, of_users * 21 // 20))}"
        yield user_id.encode(), orjson.dumps({"page": choose.choice(PAGES), "time": START_MS + 100 * number})


def direct_join(
    user_records: Iterator[tuple[bytes, bytes | None]], view_records: Iterator[tuple[bytes, bytes]]
) -> list[tuple[str, dict[str, Any]]]:
    """What the job must send when all users come before all views, by a plain loop; in the order of the views."""
    known: dict[bytes, Any] = {}
    for user_id, profile in user_records:
        if profile is None:
            known.pop(user_id, None)
        else:
            known[user_id] = orjson.loads(profile)
    return [(key.decode(), enriched(key.decode(), orjson.loads(view), known.get(key))) for key, view in view_records]
