"""A task's module with the name of one of Python's own is refused with one error, whoever has imported Python's before."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from samzapy.config.errors import ConfigError
from samzapy.config.task_class import import_program, import_task_class, import_time_function

TASK = "from samzapy import StreamTask\n\n\nclass C(StreamTask):\n    def process(self, envelope, collector, coordinator): ...\n"


@pytest.mark.parametrize("is_imported", [False, True])
@pytest.mark.parametrize("name", ["queue", "statistics", "email"])
def test_it_is_refused_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, is_imported: bool) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    mine = tmp_path / ("email/__init__.py" if name == "email" else f"{name}.py")
    mine.parent.mkdir(exist_ok=True)
    mine.write_text(TASK)
    if is_imported:
        __import__(name)
    else:
        sys.modules.pop(name, None)

    for ask in (import_task_class, import_program):
        with pytest.raises(ConfigError) as refused:
            ask(f"{name}:C", [tmp_path])
        assert f"{mine} has the name of one of Python's own modules" in str(refused.value)
        assert f"Rename it: Python may import its own '{name}' instead." in str(refused.value.to_json())


def test_pythons_own_are_imported_where_they_are_meant(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASK)
    assert abs is import_time_function("builtins:abs", [tmp_path])
