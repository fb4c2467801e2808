"""For how long a hint must hold until it is shown, and be gone until it is not. What is found: hint_rules.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from samzapy.plan.finding import ACT, KNOW, LOOK, Finding

LOOK_S = 10.0  # between two looks
AT_ONCE = frozenset({"flapping", "stuck-hook", "searching", "interpreter-held"})
PATIENT = {"over-provisioned": 180, "standby-behind": 30}  # looks until it is told: half an hour, five minutes


@dataclass(slots=True)
class _Told:
    finding: Finding
    since_ms: int
    seen: int = 0
    missed: int = 0
    is_told: bool = False


class Hints:
    """Findings that last: told when they held at TRUE looks in a row, taken back when they did not at FALSE. What has to last for long may be missing at
    GAP looks in a row meanwhile: in half an hour there is always a commit that took long, or a moment in which the machine had no time."""

    TRUE, FALSE, GAP = 3, 6, 2

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Told] = {}

    def look(self, found: Sequence[Finding], now_ms: int) -> list[Finding]:
        """One look, every ten seconds; returns what is told from now on. The numbers are those of that moment, but for what is told at once."""
        now = {(finding.code, finding.about): finding for finding in found}
        for key in [k for k in self._known if k not in now]:
            told = self._known[key]
            told.missed += 1
            if told.missed > (self.FALSE - 1 if told.is_told else self.GAP if told.finding.code in PATIENT else 0):
                del self._known[key]
        new = []
        for key, finding in now.items():
            told = self._known.setdefault(key, _Told(finding, now_ms - int(1000 * finding.for_s)))
            told.seen, told.missed = told.seen + 1, 0
            if told.is_told and finding.code in AT_ONCE:  # for how long, how often: that goes on
                told.finding = finding
            needed = 1 if finding.code in AT_ONCE else PATIENT.get(finding.code, self.TRUE)
            if not told.is_told and told.seen >= needed:
                told.is_told, told.finding = True, finding
                new.append(finding)
        return new

    def to_json(self) -> list[dict[str, Any]]:
        """What is told, the most urgent first."""
        order = {ACT: 0, LOOK: 1, KNOW: 2}
        told = sorted((t for t in self._known.values() if t.is_told), key=lambda t: (order[t.finding.severity], t.since_ms))
        return [hint_json(t.finding, t.since_ms) for t in told]


def hint_json(finding: Finding, since_ms: int) -> dict[str, Any]:
    return {
        "code": finding.code, "severity": finding.severity, "sentence": finding.sentence, "evidence": dict(finding.evidence),
        "detail": finding.detail, "remedy": finding.remedy, "since_ms": since_ms,
    }  # fmt: skip
