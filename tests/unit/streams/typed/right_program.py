"""A program in which a type checker finds nothing wrong, and of which it knows the types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

import msgspec
from pydantic import BaseModel

from samzapy.streams import Aggregate, App, Stream, Table, agg


class View(msgspec.Struct):
    ad: str
    campaign: str
    at: int


@dataclass
class Click:
    ad: str
    price: float


class Buy(TypedDict):
    item: str


class Page(BaseModel):
    path: str


def priced(click: Click, key: str) -> tuple[str, float]:
    return key, click.price


def late(view: View, time: int) -> bool:
    return view.at < time


def words(page: Page) -> Iterator[str]:
    yield from page.path.split("/")


def cheap(click: Click) -> Click | None:
    return click if click.price < 1 else None


app = App()
views = app.stream("views", key=str, value=View, time=lambda view: view.at)
clicks = app.stream("clicks", key=str, value=Click)
buys = app.stream("buys", key=int, value=Buy)
pages = app.stream("pages", value=Page)
raw = app.stream("raw")
campaigns = app.table("campaigns", key=str, value=dict, broadcast=True)

assert_type(views, Stream[str, View])
assert_type(buys, Stream[int, Buy])
assert_type(raw, Stream[bytes, bytes])
assert_type(views.map(lambda view: view.campaign), Stream[str, str])
assert_type(clicks.map(priced), Stream[str, tuple[str, float]])
assert_type(views.filter(late), Stream[str, View])
assert_type(clicks.filter_map(cheap), Stream[str, Click])
assert_type(pages.flat_map(words), Stream[bytes, str])
assert_type(views.count("views"), Table[str, int])
assert_type(views.count("more").updates(), Stream[str, int | None])
assert_type(clicks.reduce("newest", lambda old, new: new if new.price > old.price else old), Table[str, Click])
assert_type(clicks.fold("total", lambda: 0.0, lambda total, click: total + click.price, value=float), Table[str, float])
assert_type(clicks.lookup(campaigns, on=lambda click: click.ad), Stream[str, tuple[Click, dict[Any, Any] | None]])
assert_type(clicks.lookup(campaigns, how="inner"), Stream[str, tuple[Click, dict[Any, Any]]])

clicks.map(lambda click, key: (key, click.price)).to("pairs")
views.map(lambda view, time: (view.ad, time)).to("times")
views.map(lambda view, key, time: (key, time)).to("both")
raw.map(lambda value, headers: [name for name, _ in headers]).to("headers")
few, many = views.branch(lambda view: len(view.ad) < 3)
few.merge(many).peek(lambda view: print(view.ad)).sink(lambda view, key: None)
product: Aggregate[Click, float, float] = Aggregate(lambda: 1.0, lambda a, click: a * click.price, lambda a, b: a * b, lambda a: a, float)
clicks.aggregate("sums", n=agg.count(), price=agg.sum(lambda click: click.price), best=agg.max_by(lambda click: click.price), product=product)
