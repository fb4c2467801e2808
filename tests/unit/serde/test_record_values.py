"""A value in a record that JSON would give back as another one is refused; one that comes back as its annotation says is not."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import make_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, TypedDict
from zoneinfo import ZoneInfo

import msgspec
import pydantic
import pytest

from samzapy.api.errors import SerdeError
from samzapy.serde.record import RecordSerde

BERLIN = ZoneInfo("Europe/Berlin")
IN_1890 = datetime(1890, 5, 5, 12, tzinfo=BERLIN)  # 53 min 28 s ahead of UTC
REPEATED = datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN)  # the second 02:30 of that night
BIG = 2**53 + 1


class Status(Enum):
    OPEN = "open"


def data(annotation: Any, value: Any) -> Any:
    return make_dataclass("C", [("f", annotation)])(value)


def struct(annotation: Any, value: Any) -> Any:
    return msgspec.defstruct("C", [("f", annotation)])(value)


def listed(annotation: Any, value: Any) -> Any:
    return NamedTuple("C", [("f", annotation)])(value)  # type: ignore[operator]


def again(of: Any) -> Any:
    serde = RecordSerde("record:m:C", type(of))
    return serde.decode(serde.encode(of)).f


@pytest.mark.parametrize("make", [data, struct, listed])
@pytest.mark.parametrize(
    ("annotation", "value", "said"),
    [
        (bytes, "password", "'password' would come back as b'"),
        (bytes, Decimal("Infinity"), "would come back as b'"),
        (float, BIG, "9007199254740993 would come back as 9007199254740992.0"),
        (float | None, BIG, "would come back as"),
        (dict[str, float], {"a": BIG}, r"at `\$\.f\['a'\]`"),
        (list[float], [1.0, BIG], r"at `\$\.f\[1\]`"),
        (set[float], {BIG, 1}, "9007199254740993 would come back as 9007199254740992.0"),
        (datetime, IN_1890, r"1890-05-05 12:00:00\+00:53:28 would come back as 1890-05-05 12:00:00\+00:53 - at `\$\.f`"),
        (list[datetime], [IN_1890], "would come back as"),
        (frozenset[datetime], frozenset({IN_1890, REPEATED}), r"00:53:28 would come back as"),
        (dict[datetime, int], {IN_1890: 1}, "would come back as another key"),
        (time, time(12, tzinfo=timezone(timedelta(seconds=30))), "would come back as"),
        (set, [[1]], "unhashable"),
    ],
)
def test_what_would_come_back_as_another_value_is_refused(make: Callable[[Any, Any], Any], annotation: Any, value: Any, said: str) -> None:
    with pytest.raises(SerdeError, match=rf"cannot write this C, because it could not be read back: .*{said}"):
        again(make(annotation, value))


@pytest.mark.parametrize("make", [data, struct, listed])
@pytest.mark.parametrize(
    ("annotation", "value", "back"),
    [
        (bytes, bytearray(b"password"), b"password"),
        (float, 2**53, 2.0**53),
        (int | float, BIG, BIG),
        (datetime, datetime(2024, 5, 5, 12, tzinfo=BERLIN), datetime(2024, 5, 5, 10, tzinfo=UTC)),
        (datetime, REPEATED, datetime(2024, 10, 27, 1, 30, tzinfo=UTC)),
        (set[datetime], {REPEATED}, {datetime(2024, 10, 27, 1, 30, tzinfo=UTC)}),
        (str, Status.OPEN, "open"),
        (str, date(2024, 5, 5), "2024-05-05"),
        (uuid.UUID, str(uuid.UUID(int=1)), uuid.UUID(int=1)),
        (Decimal, 0.1, Decimal("0.1")),
        (Any, (1, {2}), [1, [2]]),
        (set, {date(2024, 5, 5)}, {"2024-05-05"}),
    ],
)
def test_what_comes_back_as_its_annotation_says_is_written(make: Callable[[Any, Any], Any], annotation: Any, value: Any, back: Any) -> None:
    assert again(make(annotation, value)) == back


class Typed(TypedDict):
    f: float


def test_a_typed_dict_too() -> None:
    with pytest.raises(SerdeError, match="9007199254740993 would come back as"):
        RecordSerde("record:m:Typed", Typed).encode({"f": BIG})


class Model(pydantic.BaseModel):
    f: datetime


def test_a_model_with_a_time_in_a_repeated_hour_is_written_and_one_that_would_be_another_is_not() -> None:
    assert again(Model(f=REPEATED)) == datetime(2024, 10, 27, 1, 30, tzinfo=UTC)
    with pytest.raises(SerdeError, match="its f would come back as 1890-05-05"):
        again(Model(f=IN_1890))


def test_a_list_where_a_set_of_keys_was_is_told_when_it_is_read() -> None:
    with pytest.raises(SerdeError, match="unhashable"):
        RecordSerde("record:m:C", make_dataclass("C", [("f", set)])).decode(b'{"f": [[1]]}')
