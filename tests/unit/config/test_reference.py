"""The key reference and the JSON schema are what the settings say."""

from __future__ import annotations

import json
from pathlib import Path

from samzapy.config import reference
from samzapy.config.schema import SECTIONS, Settings, known_keys

ROOT = Path(__file__).parents[3]


def test_the_files_in_config_are_up_to_date() -> None:
    assert [] == reference.drifted(ROOT), "run python -m samzapy.config.reference --write"


def test_a_drift_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / reference.MARKDOWN).write_text(reference.markdown() + "more\n")

    assert [reference.MARKDOWN, reference.SCHEMA] == reference.drifted(tmp_path)


def test_every_key_is_described() -> None:
    for model in (Settings, *SECTIONS.values()):
        for key, name in known_keys(model).items():
            assert model.model_fields[name].description, f"{model.__name__}.{key}"


def test_the_schema_knows_every_key_and_no_other() -> None:
    schema = json.loads(reference.json_schema())

    assert set(known_keys(Settings)) == set(schema["properties"])
    assert {"job", "kafka"} == set(schema["required"])
    assert [{"required": ["task", "inputs"]}, {"required": ["app"]}] == schema["oneOf"]
    for model in SECTIONS.values():
        assert set(known_keys(model)) == set(schema["$defs"][model.__name__]["properties"])
        assert schema["$defs"][model.__name__]["additionalProperties"] is False


def test_defaults_are_written_as_a_person_writes_them() -> None:
    text = reference.markdown()

    assert "| `commit.interval` | `1s` | duration |" in text
    assert "| `containers.memory` | `512MiB` | size |" in text
    assert "| `job` | **required** | text |" in text
