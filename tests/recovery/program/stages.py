"""The program of `make chaos`: three stages, sums before the topic between them, windows of two kinds, and records that are passed on as they are."""

from __future__ import annotations

from typing import Any

from samzapy.streams import App, agg, hopping, tumbling


def at(view: dict[str, Any]) -> int:
    time: int = view["ts"]
    return time


def user(view: dict[str, Any]) -> str:
    return str(view["user"])


def page(view: dict[str, Any]) -> str:
    return str(view["page"])


def amount(view: dict[str, Any]) -> int:
    cents: int = view["amount"]
    return cents


def number(view: dict[str, Any]) -> dict[str, int]:
    return {"n": view["n"]}


app = App()
# Times are at most 3 s out of order (feed.py): no record is late, so what comes out does not depend on when anything happens.
views = app.stream("stages-views", key=str, value=dict, time=at, watermark_delay="4s")
views.map(number, value=dict).to("stages-seen")
by_page = views.key_by(page, "by-page", key=str)
by_page.window(tumbling("10s")).count("per-page").to("stages-pages")
by_page.map(number, value=dict).to("stages-passed-on")
users = by_page.key_by(user, "by-user", key=str).window(hopping("20s", every="10s"))
users.aggregate("per-user", views=agg.count(), cents=agg.sum(amount)).to("stages-users")
