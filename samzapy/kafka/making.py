"""Making a Kafka client must not take for ever.

Measured (test_too_little_address_space_ends_the_process_with_the_place_instead_of_a_hang): where a process may have too little address space or
too few threads (`ulimit -v`, `ulimit -u`), librdkafka waits for ever, in C, for a thread that was never started. Nothing of Python's runs then,
no handler and often no new thread either. So the kernel's alarm ends the process: `faulthandler` writes where it was, without Python's help,
and the signal's own default is the end.
"""

from __future__ import annotations

import faulthandler
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from samzapy.api.errors import ConfigurationError

LONGEST_S = 20.0
_lock = threading.Lock()
_longest_s = 0.0  # not guarded
_under_way = 0
_timer_before = (0.0, 0.0)  # the user's own


def guard_clients(longest_s: float = LONGEST_S) -> None:
    """From now on, making a client in this process may take so many seconds; then the process ends by SIGALRM."""
    global _longest_s
    faulthandler.register(signal.SIGALRM, all_threads=False, chain=True)
    _longest_s = longest_s


@contextmanager
def making() -> Iterator[None]:
    """Around the making of a client.

    Raises:
        ConfigurationError: properties that the job file sets do not go with those that samzapy sets.
    """
    try:
        with _guarded():
            yield
    except KafkaException as error:
        if error.args[0].code() != KafkaError._INVALID_ARG:
            raise
        said = error.args[0].str()
        remedy = "Change or remove the key that this message names, under `kafka` in the job file."
        raise ConfigurationError(f"Kafka's client refuses these properties together: {said}.", remedy) from None


@contextmanager
def _guarded() -> Iterator[None]:
    global _under_way, _timer_before
    if not _longest_s:
        yield
        return
    with _lock:
        before = signal.setitimer(signal.ITIMER_REAL, _longest_s)
        if _under_way == 0:
            _timer_before = before
        _under_way += 1
    try:
        yield
    finally:
        with _lock:
            _under_way -= 1
            if _under_way == 0:
                signal.setitimer(signal.ITIMER_REAL, *_timer_before)
