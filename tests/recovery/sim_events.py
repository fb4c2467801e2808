"""What an operator, a machine or a network does to a simulated job: by name, as a plan draws them."""

from __future__ import annotations

from collections.abc import Callable

from samzapy.api.errors import ConfigurationError, LauncherError
from tests.recovery.sim_plan import FAILURES, Event
from tests.recovery.sim_stage import Stage
from tests.simulation.process import SimContainer
from tests.simulation.simulation import SimDriver


def a_container(stage: Stage, event: Event) -> SimContainer | None:
    """One that was named; which one, the dice say."""
    live = [c for c in stage.sim.live_containers() if c.container is not None]
    return live[int(event.dice * len(live))] if live else None


def a_driver(stage: Stage) -> SimDriver | None:
    """The newest that is not frozen."""
    return next((d for d in reversed(stage.sim.live_drivers()) if d.process.frozen_until <= stage.sim.baton.now), None)


def _scale(stage: Stage, event: Event) -> None:
    _ask(stage, lambda d: d.coordinator.changes.scale(1 + int(event.dice * sum(stage.plan.hosts.values()))), "scalings")


def _restart(stage: Stage, event: Event) -> None:
    number = int(event.dice * 4)
    _ask(stage, lambda d: d.coordinator.changes.restart(None if number == 3 else number), "restarts")


def _ask(stage: Stage, request: Callable[[SimDriver], object], what: str) -> None:
    driver = a_driver(stage)
    if driver is None:
        return
    try:
        request(driver)
        stage.coverage.count(what)
    except (ConfigurationError, LauncherError):
        stage.coverage.count("requests refused")


def _second_driver(stage: Stage, event: Event) -> None:
    stage.sim.start(takeover=event.dice < 0.7)
    stage.coverage.count("second drivers")


def _kill_driver(stage: Stage, event: Event) -> None:
    driver = a_driver(stage)
    if driver is not None:
        stage.sim.baton.kill(driver.process, "SIGKILL")


def _freeze_driver(stage: Stage, event: Event) -> None:
    driver = a_driver(stage)
    if driver is not None:
        stage.sim.baton.freeze(driver.process, event.seconds)


def _kill_container(stage: Stage, event: Event) -> None:
    container = a_container(stage, event)
    if container is not None:
        stage.sim.baton.kill(container.process, "SIGKILL")


def _freeze_container(stage: Stage, event: Event) -> None:
    container = a_container(stage, event)
    if container is not None:
        stage.freeze(container.process, event.seconds)


def _cut_off_container(stage: Stage, event: Event) -> None:
    container = a_container(stage, event)
    if container is not None:
        stage.sim.cluster.cut_off(event.seconds, container.process.name)


def _cut_off_from_driver(stage: Stage, event: Event) -> None:
    container = a_container(stage, event)
    if container is not None:
        container.hears_nothing_until = stage.sim.baton.now + event.seconds


def _outage(stage: Stage, event: Event) -> None:
    stage.sim.cluster.cut_off(event.seconds)
    stage.coverage.count("outages")


def _fail(stage: Stage, event: Event) -> None:
    call, kind = FAILURES[int(event.dice * len(FAILURES))]
    stage.sim.cluster.fail_next(call, kind)


def _expire(stage: Stage, event: Event) -> None:
    stage.sim.cluster.expire(stage.sim.job.container_transactional_id(int(event.dice * 3)))
    stage.coverage.count("transaction timeouts")


def _hold_end(stage: Stage, event: Event) -> None:
    stage.sim.cluster.disturb_next("end", "held")
    stage.coverage.count("held EndTxn")


def _hold_marker(stage: Stage, event: Event) -> None:
    stage.sim.cluster.disturb_next("marker", "held")


def _lose_host(stage: Stage, event: Event) -> None:
    """All processes there end, and its disk is gone."""
    sim, host = stage.sim, list(stage.plan.hosts)[int(event.dice * len(stage.plan.hosts))]
    for container in [c for c in sim.live_containers() if c.host == host]:
        sim.baton.kill(container.process, "its host is gone")
    sim.disk.delete(host)
    stage.coverage.count("local state deleted")


def _leave_host(stage: Stage, event: Event) -> None:
    """It is being decommissioned, and comes back after a while."""
    host = list(stage.plan.hosts)[int(event.dice * len(stage.plan.hosts))]
    if len(stage.plan.hosts) > 2:
        stage.sim.leaving.add(host)
        stage.sim.baton.spawn(f"{host} comes back", lambda: stage.sim.leaving.discard(host), delay_s=event.seconds)
        stage.coverage.count("hosts that leave")


def _back_up(stage: Stage, event: Event) -> None:
    for host in stage.plan.hosts:
        stage.backups.setdefault(host, stage.sim.disk.copy(host))


EVENTS: dict[str, Callable[[Stage, Event], None]] = {
    "scale": _scale, "restart": _restart, "second_driver": _second_driver, "kill_driver": _kill_driver, "freeze_driver": _freeze_driver,
    "kill_container": _kill_container, "freeze_container": _freeze_container, "cut_off_container": _cut_off_container,
    "cut_off_from_driver": _cut_off_from_driver, "outage": _outage, "fail": _fail, "expire": _expire, "hold_end": _hold_end,
    "hold_marker": _hold_marker, "lose_host": _lose_host, "leave_host": _leave_host, "back_up": _back_up,
}  # fmt: skip
