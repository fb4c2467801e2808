"""A container's life has one table and one writer: the page prints the table, and nothing else in the product sets a member's fields."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields

from samzapy.coordinator.membership import Member
from samzapy.plan.container_phases import transitions_table
from tests.house.test_reliability import ROOT

COORDINATOR = ROOT / "samzapy" / "coordinator"
WRITER = COORDINATOR / "members.py"
FIELDS = {f.name for f in fields(Member)}
NOT_MEMBERS = {"self", "roster"}  # what else has attributes of these names: parts of the coordinator by `self.x`, and the roster's state


def test_the_page_prints_the_table_of_transitions() -> None:
    assert transitions_table() in (ROOT / "samzapy" / "ARCHITECTURE.md").read_text()


def written(source: str) -> Iterator[str]:
    """Statements that set or delete a field of something that may be a member, or set one by its name."""
    for node in ast.walk(ast.parse(source)):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For):
            targets = [node.target]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("setattr", "__setattr__", "delattr"):
            yield ast.unparse(node)
        for target in (part for one in targets for part in ast.walk(one)):
            if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store | ast.Del) and target.attr in FIELDS:
                owner = target.value.attr if isinstance(target.value, ast.Attribute) else ast.unparse(target.value)
                if owner.lstrip("_") not in NOT_MEMBERS:
                    yield ast.unparse(node)


def test_only_one_module_writes_a_members_fields() -> None:
    found = {f"{path.name}: {line}" for path in COORDINATOR.rglob("*.py") if path != WRITER for line in written(path.read_text())}

    assert set() == found
    assert len(set(written(WRITER.read_text()))) > 20, "it looks at the right module"


def test_a_write_elsewhere_would_be_found() -> None:
    lines = ["member.state = 1", "self.members[0].phase = 1", "a, m.owner = (1, 2)", "del m.heard", "m.reason += 'x'", "setattr(m, name, 1)"]

    assert lines == list(written("\n".join(lines)))
    assert [] == list(written("self.state = 1\nself._roster.state = 2\nmember.launch.handle.kill()\nroster.members.lose(member, 'x')"))


def test_what_a_member_is_made_of_cannot_be_changed_in_place() -> None:
    for one in fields(Member):
        value = getattr(Member(number=0), one.name)
        assert not hasattr(value, "__dataclass_params__") or value.__dataclass_params__.frozen, one.name
