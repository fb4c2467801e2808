"""The errors a person may meet, in four families.

Configuration (the job file), the user's code, Kafka or Spark, ourselves. Every error names what, where and what to do: `message` says
what is wrong and where, `remedy` says what to do about it. `code` is stable and searchable; `exit_code` is what the command exits with.
"""

from __future__ import annotations


class SamzapyError(Exception):
    """The root: `str()` gives message and remedy, one sentence each."""

    code = "SZ000"
    exit_code = 1

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()


def shortened(key: object, limit: int = 80) -> str:
    """A key as messages show it."""
    text = repr(key[: limit + 1]) if isinstance(key, str | bytes) else repr(key)
    return text if len(text) <= limit else text[:limit] + "…"


def other_thread(what: str) -> tuple[str, str]:
    """Message and remedy for `what`, called from a thread of the task's own."""
    return (
        f"{what} was called from another thread than the one that runs the task's hooks.",
        "Call it in the hook, before the hook returns; wait there for what threads work out: `future.result()`.",
    )


# -- the job file ----------------------------------------------------------------------------------------------------------------


class ConfigurationError(SamzapyError):
    """The job file or the command line asks for something that cannot be."""

    code = "SZ100"
    exit_code = 2


class StateMismatch(ConfigurationError):
    """The job file does not fit the state that earlier runs left (serdes, changelog, partitions, guarantee)."""

    code = "SZ110"


# -- the user's code -------------------------------------------------------------------------------------------------------------


class TaskError(SamzapyError):
    """The user's task raised, or used the API in a way that cannot work. The record that was being processed is named."""

    code = "SZ200"


class SerdeError(TaskError):
    """Bytes that do not decode, or a value that does not encode, by the serde that the job file names."""

    code = "SZ210"


class RecordTooLarge(TaskError):
    """A put or send beyond what its topic takes; raised where it is called, so that the error belongs to the record."""

    code = "SZ211"


class StoreClosed(TaskError):
    """A store used after `close()`, from another task, or written where that is not allowed."""

    code = "SZ212"


class UnknownOutput(TaskError):
    """A send to a topic that `outputs` does not list."""

    code = "SZ213"


# -- Kafka and Spark -------------------------------------------------------------------------------------------------------------


class LogError(SamzapyError):
    """Kafka refused or failed something."""

    code = "SZ300"


class ClusterUnreachable(LogError):
    """No broker (or no Spark master) answered in time."""

    code = "SZ301"
    exit_code = 4


class TopicMissing(LogError):
    """A topic that must exist does not."""

    code = "SZ302"
    exit_code = 4


class TopicMisconfigured(LogError):
    """An internal topic exists with settings under which state could be lost."""

    code = "SZ303"


class NotAuthorized(LogError):
    """Kafka's access control refused an operation that the job needs."""

    code = "SZ304"
    exit_code = 4


class NotAuthenticated(LogError):
    """The brokers refused the login: user, password, mechanism or token."""

    code = "SZ305"
    exit_code = 4


class TlsFailed(LogError):
    """No secure connection: the broker's certificate is not accepted, or broker and client do not both speak TLS."""

    code = "SZ306"
    exit_code = 4


class TransactionAborted(LogError):
    """The transaction must be aborted: nothing of it will be seen. What a crash would lose is lost; the inputs are read again."""

    code = "SZ310"


class RecordRejected(TransactionAborted):
    """Kafka refused a record of the transaction for what it is: its size, its timestamp, the topic's rules. The same record would be again."""

    code = "SZ315"


class InDoubt(LogError):
    """Something went wrong and it is not known what the broker did: keep nothing, take ownership anew, restore."""

    code = "SZ311"


class Fenced(LogError):
    """This producer is dead at the broker: another took its id, or its transaction timed out. Ownership must be asked for again."""

    code = "SZ312"
    exit_code = 5


class Superseded(LogError):
    """Another incarnation owns what this one thought it owned. It exits; nothing it had uncommitted is seen."""

    code = "SZ313"
    exit_code = 5


class OwnedElsewhere(LogError):
    """Another run of the job is alive."""

    code = "SZ314"
    exit_code = 5


class OffsetOutOfRange(LogError):
    """The next offset of an input lies outside what the topic still holds."""

    code = "SZ320"


class StateRefused(SamzapyError):
    """Starting on what is there could lose or double records: checkpoint lost, changelog truncated or replaced."""

    code = "SZ330"


class LauncherError(SamzapyError):
    """A container could not be started (no slot, no Java, Spark refused)."""

    code = "SZ340"
    exit_code = 4


# -- ourselves -------------------------------------------------------------------------------------------------------------------


class OutputFailed(SamzapyError):
    """What a command shows cannot be written to its standard output."""

    code = "SZ350"


class InternalError(SamzapyError):
    """A promise that samzapy makes to itself does not hold. Stop rather than go on wrong."""

    code = "SZ900"


def check(condition: bool, promise: str) -> None:
    """Assert a promise in the code that runs, in production too.

    Raises:
        InternalError: when `condition` is false; `promise` says what should have held.
    """
    if not condition:
        raise InternalError(
            f"broken promise: {promise}.", "Please report this with the log; restarting is safe: only committed work is kept."
        )
