"""Looking inside: what is answered, and that nothing which is asked can change anything."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from samzapy.api.errors import ConfigurationError
from samzapy.container import inside, long_poll
from samzapy.container.inside import MAX_ANSWER_BYTES, Doing, Inside
from samzapy.container.profile import stacks_in
from samzapy.container.sampling import Sampler
from samzapy.container.tracing import Tracing

NEVER_S = 60.0
MAY_IMPORT = {  # of samzapy: what can be looked at, and words
    "samzapy.api.errors", "samzapy.clock", "samzapy.config.secrets", "samzapy.container.inside", "samzapy.container.profile",
    "samzapy.container.sampling", "samzapy.container.stuck_hook",
}  # fmt: skip


@pytest.fixture
def sampler() -> Iterator[Sampler]:
    made = Sampler()
    yield made
    made.close()


def asked(found: Inside, **question: Any) -> dict[str, Any]:
    """The answer, waited for on the loop's thread, which goes on working."""
    answers = found.take([{"id": "1", **question}])
    while not answers:
        work()
        answers = found.take([])
    (answer,) = answers
    return answer


def parse(turns: int) -> int:
    return sum(i * i for i in range(turns))


def score(turns: int) -> int:
    return sum(i * i for i in range(turns))


def work() -> None:
    """70 % parse, 20 % score."""
    parse(70_000)
    score(20_000)
    sum(i * i for i in range(10_000))


def made(sampler: Sampler | None = None, traced: Tracing | None = None) -> Inside:
    return Inside(threading.get_ident(), lambda: Doing("process", 1.5), lambda: traced, sampler)


def test_what_answers_imports_nothing_by_which_anything_could_be_changed() -> None:
    for module in (inside, long_poll):
        tree = ast.parse(Path(module.__file__).read_text())
        names = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("samzapy")}
        assert names <= MAY_IMPORT, module
        assert not [node for node in ast.walk(tree) if isinstance(node, ast.Import) and any(a.name.startswith("samzapy") for a in node.names)]


def test_the_stack_has_the_loops_thread_first_and_all_others() -> None:
    ended, found = threading.Event(), {}
    other = threading.Thread(target=ended.wait, args=(NEVER_S,), name="a user's own", daemon=True)
    other.start()
    look = made()
    asks = threading.Thread(target=lambda: found.update(look.take([{"id": "7", "kind": "stack"}])[0]))
    asks.start()
    asks.join()
    ended.set()
    assert "7" == found["id"]
    told = found["found"]
    assert ("process", 1.5) == (told["now"]["phase"], told["now"]["seconds"])
    assert told["threads"][0]["is_loop"]
    assert any("test_inside.py" in frame and "in test_the_stack_has" in frame for frame in told["threads"][0]["frames"])
    assert "a user's own" in [thread["name"] for thread in told["threads"][1:]]


def shares_of(folded: str) -> dict[str, float]:
    stacks = stacks_in(folded)
    total = sum(stacks.values())
    return {name: sum(us for stack, us in stacks.items() if any(f.endswith(f":{name}") for f in stack)) / total for name in ("parse", "score")}


@pytest.mark.prove
def test_a_long_profile_has_each_functions_share_nearly(sampler: Sampler) -> None:
    shares = shares_of(asked(made(sampler), kind="profile", seconds=20.0)["found"]["folded"])
    assert 0.65 <= shares["parse"] <= 0.75, shares
    assert 0.15 <= shares["score"] <= 0.25, shares


def test_a_profile_has_each_functions_share(sampler: Sampler) -> None:
    """Nearly: a long profile on a quiet machine. Here a wait for the processor counts for whatever function it falls into."""
    answer = asked(made(sampler), kind="profile", seconds=2.0)["found"]
    shares = shares_of(answer["folded"])
    assert shares["parse"] > shares["score"] > 0, shares
    assert 2.0 <= answer["seconds"]


def test_what_cannot_be_answered_says_why() -> None:
    assert "main thread" in asked(made(), kind="profile", seconds=1.0)["error"]
    assert "no tasks yet" in asked(made(), kind="trace", task="Partition 0", records=1, seconds=1.0)["error"]
    assert "of another version" in asked(made(), kind="levitate")["error"]
    assert "the question failed" in asked(made(), kind="trace")["error"]
    assert "the question failed" in asked(made(), kind="profile", seconds="long")["error"]


def test_a_handler_of_the_tasks_own_for_the_signal_is_left_alone(sampler: Sampler) -> None:
    import signal

    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    try:
        with pytest.raises(ConfigurationError, match="has its own signal handler for SIGALRM"):
            sampler.begin(sampler)  # type: ignore[arg-type]  # it is not asked for anything
    finally:
        sampler.close()
        assert signal.SIG_IGN == signal.getsignal(signal.SIGALRM)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_an_answer_that_is_too_large_is_not_sent() -> None:
    class Huge:
        def ask(self, task: str, records: int, seconds: float) -> None: ...

        def over(self) -> list[dict[str, Any]]:
            return [{"value": "x" * MAX_ANSWER_BYTES}]

    huge = Inside(0, lambda: Doing("process", 0.0), lambda: Huge(), None)
    assert "more than" in asked(huge, kind="trace", task="t", records=1, seconds=1.0)["error"]
