"""A program with mistakes; each line with one says what a type checker finds there."""

from __future__ import annotations

from dataclasses import dataclass

from samzapy.streams import App, agg


@dataclass
class Click:
    ad: str
    price: float


def of_number(value: int) -> int:
    return value


def wants_more(value: Click, other: int) -> int:
    return other


app = App()
clicks = app.stream("clicks", key=str, value=Click)
users = app.table("users", key=str, value=int)

clicks.map(lambda click: click.prize).to("a")  # attr-defined
clicks.map(of_number).to("b")  # arg-type
clicks.map(wants_more).to("c")  # arg-type
clicks.filter(lambda click: click.ads == "x").to("d")  # attr-defined
clicks.map(lambda click: click.ad).map(lambda ad: ad.price).to("e")  # attr-defined
clicks.count(name="clicks")  # call-arg
clicks.reduce("newest", lambda old, new: new.ad)  # arg-type, return-value
clicks.fold("total", lambda: 0.0, lambda total, click: total + click.ad, value=float)  # operator
clicks.lookup(users, how="outer").to("f")  # call-overload
clicks.lookup(users).map(lambda pair: pair[1].bit_length()).to("g")  # union-attr
clicks.aggregate("sums", agg.count())  # call-arg
app.stream("times", value=Click, time=lambda click: click.at)  # attr-defined
