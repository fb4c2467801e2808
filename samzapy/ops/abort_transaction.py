"""The end of a transaction of a command that goes wrong. Left open, it would keep all readers of its topics waiting until it times out."""

from __future__ import annotations

from samzapy.api.errors import Fenced, SamzapyError
from samzapy.ports import TransactionalProducer


def abort_open(producer: TransactionalProducer) -> Fenced | None:
    """Abort the producer's transaction, if one is open; what it says if another one has taken its place. Nothing else is raised: what went wrong
    before says more."""
    try:
        producer.abort()
    except Fenced as error:
        return error
    except SamzapyError:
        return None
    return None
