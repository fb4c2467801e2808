"""What is made of measured figures: pure functions, and the exit codes of `check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench.__main__ import RECORDED, YARDSTICKS, main
from tests.bench.ratios import compared, differences, medians, middle_rate, percentile, ratio, ratios, table, with_recorded
from tests.bench.topics import Fingerprint
from tests.bench.yardstick import Side, Sides, measure

ROUNDS = [
    {"loop": {"records_per_s": 200.0, "cpu_us": 4.0}, "ours": {"records_per_s": 100.0, "cpu_us": 8.0}},
    {"loop": {"records_per_s": 100.0, "cpu_us": 4.0}, "ours": {"records_per_s": 80.0, "cpu_us": 10.0}},
    {"loop": {"records_per_s": 100.0, "cpu_us": 5.0}, "ours": {"records_per_s": 60.0, "cpu_us": 10.0}},
]
PAIRS = [("ours", "loop")]


def result(median: float, records: int = 1000) -> dict[str, Any]:
    of_pair = {"ours / loop": {"records_per_s": {"median": median}}}
    return {
        "commit": "abc", "started": "now", "machine": {"processor": "p"}, "versions": {},
        "yardsticks": {"w2": {"records": records, "ratios": of_pair}},
    }  # fmt: skip


def recorded(median: float) -> dict[str, Any]:
    return result(median) | {"noise": {"records_per_s": 0.2, "other": 0.5}}


def test_half_as_good_is_a_half_whichever_way_the_figure_goes() -> None:
    assert 0.5 == ratio("records_per_s", 100, 200) == ratio("cpu_us", 8, 4)


def test_a_side_that_measured_nothing_has_no_ratio() -> None:
    with pytest.raises(ValueError, match="more records"):
        ratio("cpu_us", 0.0, 4)


def test_a_ratio_is_of_one_round_and_the_median_of_these_counts() -> None:
    found = ratios(ROUNDS, PAIRS)["ours / loop"]

    assert {"median": 0.6, "lowest": 0.5, "highest": 0.8} == found["records_per_s"]
    assert {"median": 0.5, "lowest": 0.4, "highest": 0.5} == found["cpu_us"]
    assert 100.0 == medians(ROUNDS)["loop"]["records_per_s"]


def test_the_table_has_a_line_for_each_side_and_each_ratio() -> None:
    text = "\n".join(table("w2", ROUNDS, PAIRS))

    assert "medians of 3 rounds" in text
    assert "ours / loop: 0.60 by records_per_s (0.50 to 0.80)" in text


def test_the_rate_is_that_of_the_middle_of_the_outputs() -> None:
    steady = [1000 + n for n in range(1000)]  # one a millisecond
    late_end = [*steady[:950], *(n + 60_000 for n in steady[950:])]

    assert 2000 == pytest.approx(middle_rate(steady, 2000), rel=0.01)
    assert middle_rate(steady, 2000) == middle_rate(late_end, 2000)


def test_outputs_of_one_instant_have_no_rate() -> None:
    with pytest.raises(ValueError, match="within 0 ms"):
        middle_rate([5] * 100, 100)


def test_percentiles() -> None:
    assert (51, 100, 100) == (percentile(range(1, 101), 50), percentile(range(1, 101), 99), percentile(range(1, 101), 100))


def test_sides_are_measured_in_turn() -> None:
    order: list[str] = []

    def side(name: str) -> Side:
        return Side(name, lambda: order.append(name) or {"cpu_us": float(len(order))})

    rounds = measure(Sides([side("a"), side("b")], [], 1), 2, lambda _: None)

    assert ["a", "b", "a", "b"] == order
    assert [{"a": {"cpu_us": 1.0}, "b": {"cpu_us": 2.0}}, {"a": {"cpu_us": 3.0}, "b": {"cpu_us": 4.0}}] == rounds


@pytest.mark.parametrize(("now", "words"), [(0.5, []), (0.41, []), (0.62, []), (0.39, ["worse"]), (0.63, ["better"])])
def test_a_ratio_outside_the_noise_is_told(now: float, words: list[str]) -> None:
    found = differences(recorded(0.5), result(now))

    assert len(words) == len(found)
    assert all(word in line for word, line in zip(words, found, strict=True))


def test_other_sizes_are_not_compared() -> None:
    assert ["w2: 10 records now, 1,000 when recorded: not comparable"] == differences(recorded(0.5), result(0.5, 10))


def test_a_recorded_ratio_that_was_not_measured_is_told() -> None:
    now = result(0.5)
    now["yardsticks"]["w2"]["ratios"] = {}

    assert ["w2, ours / loop: records_per_s is recorded, but was not measured"] == differences(recorded(0.5), now)
    assert (0, 1) == (compared(recorded(0.5), now), compared(recorded(0.5), result(0.1)))


def test_recording_replaces_what_was_measured_and_keeps_the_rest() -> None:
    was = recorded(0.5)
    was["yardsticks"]["w1"] = was["yardsticks"]["w2"]

    assert 0.7 == with_recorded(was, result(0.7))["yardsticks"]["w2"]["ratios"]["ours / loop"]["records_per_s"]["median"]
    assert was["yardsticks"]["w1"] == with_recorded(was, result(0.7))["yardsticks"]["w1"]
    assert {"ours / loop": {}} == with_recorded(was, result(0.7), ["cpu_us"])["yardsticks"]["w2"]["ratios"]


@pytest.mark.parametrize(("now", "code"), [(0.5, 0), (0.1, 1)])
def test_check_fails_outside_the_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str], now: float, code: int) -> None:
    (tmp_path / "recorded.json").write_text(json.dumps(recorded(0.5)))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "1.json").write_text(json.dumps(result(now)))

    assert code == main(["check", "--dir", str(tmp_path), "--recorded", str(tmp_path / "recorded.json")])
    assert f"1 ratios compared, {code} outside" in capsys.readouterr().out


def test_an_unknown_yardstick_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["run", "--only", "w2,nothing"])
    assert "no such yardstick: nothing" in capsys.readouterr().err


def test_what_is_recorded_is_of_yardsticks_that_there_are() -> None:
    found = json.loads(RECORDED.read_text())

    assert set() == set(found["yardsticks"]) - set(YARDSTICKS)
    assert {"processor", "cores", "memory", "system"} == set(found["machine"])


def test_a_fingerprint_tells_order_loss_and_where_a_key_ends() -> None:
    def contents(*records: tuple[bytes, bytes]) -> dict[int, tuple[int, str]]:
        fingerprint = Fingerprint()
        for key, value in records:
            fingerprint.add(0, key, value)
        return fingerprint.contents()

    one, two = (b"a", b"1"), (b"b", b"2")
    assert contents(one, two) == contents(one, two)
    assert 4 == len({str(contents(*given)) for given in ([one, two], [two, one], [one], [(b"a1", b""), two])})
