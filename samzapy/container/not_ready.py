"""A container that cannot begin for a reason that lies on its host: the driver hears it, and ends the job, instead of starting it again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from samzapy.api.errors import ClusterUnreachable, SamzapyError, Superseded
from samzapy.model.states import ContainerOutcome
from samzapy.ports import Control

LOG = logging.getLogger("samzapy.container")


def tell_driver(control: Control, incarnation: str, facts: Mapping[str, Any], error: SamzapyError) -> None:
    """Report an error that every start would meet. Where the driver cannot be told, only this process's log says it.

    Args:
        facts: what the coordinator should know of this process: host, pid.
    """
    try:
        control.register(incarnation, facts)
        control.report_final(incarnation, {**facts, "number": 1, "outcome": ContainerOutcome.FAILED, "error": {**error.to_json(), "fatal": True}})
    except (ClusterUnreachable, Superseded) as unheard:
        LOG.warning("the error that ends this container could not be reported to the driver: %s: %s", unheard.code, unheard)
