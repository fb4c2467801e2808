"""All errors that users see, in four families: configuration (the job file), the user's code, Kafka and Spark, samzapy itself.

`message` says what is wrong and where; `remedy` says what to do. `code` is stable and searchable; `exit_code` is the command's exit code (exit_codes.py).
"""

from __future__ import annotations

from samzapy.api import exit_codes


class SamzapyError(Exception):
    """The base class of all errors. `str()` gives message and remedy."""

    code = "SZ000"
    exit_code = exit_codes.FAILED
    where = ""  # the operator of a program in which it was raised

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".rstrip()

    def to_json(self) -> dict[str, str | int]:
        """The error as reports between processes carry it: code, message, remedy, exit_code."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy, "exit_code": self.exit_code}


def shortened(key: object, limit: int = 80) -> str:
    """`repr` of a key, cut to `limit` characters, for messages."""
    text = repr(key[: limit + 1]) if isinstance(key, str | bytes) else repr(key)
    return text if len(text) <= limit else text[:limit] + "…"


def other_thread(what: str) -> tuple[str, str]:
    """Message and remedy for `what`, called from a thread that the task started."""
    return (
        f"{what} was called from a thread other than the one that runs the task's hooks.",
        "Call it in the hook, before the hook returns; wait there for the results of other threads: `future.result()`.",
    )


# -- the job file ----------------------------------------------------------------------------------------------------------------


class ConfigurationError(SamzapyError):
    """The job file or the command line is wrong or contradicts itself."""

    code = "SZ100"
    exit_code = exit_codes.CONFIGURATION


class StateMismatch(ConfigurationError):
    """The job file does not match the state of earlier runs (serdes, changelog, partitions).

    Attributes:
        is_state_whole: topics have grown, and no state is wrong for that.
    """

    code = "SZ110"

    def __init__(self, message: str, remedy: str = "", *, is_state_whole: bool = False) -> None:
        super().__init__(message, remedy)
        self.is_state_whole = is_state_whole


# -- the user's code -------------------------------------------------------------------------------------------------------------


class TaskError(SamzapyError):
    """The user's task raised an exception or misused the API. The message names the record that was being processed."""

    code = "SZ200"


class SerdeError(TaskError):
    """The serde in the job file cannot decode the bytes, or cannot encode the value."""

    code = "SZ210"


class StateUnreadable(SerdeError):
    """An entry of a store cannot be read by the job's current serdes or classes. No record is at fault: the job stops, and `on_error` does not apply."""

    code = "SZ214"


def unreadable_state(store: str, what: str, error: SerdeError) -> StateUnreadable:
    """The error for an entry that cannot be read. `store`: its name with the task; `what`: the key, or which entry, in words."""
    return StateUnreadable(
        f"{store}: its entry for {what} cannot be read: {error.message}",
        "The class or serde has changed since the entry was written, or it was written wrongly. No record is at fault, so `on_error` does not apply. "
        "If the class changed, let it read old entries (defaults, or `upgrade`), or use the class or serde that wrote them. If the entry is "
        "wrong, let `upgrade` (or `decode` of a serde of your own, under the same name) return another value for it. Then run the job again.",
    )


class RecordTooLarge(TaskError):
    """A put or send is larger than its topic's limit. The call raises it, so `on_error` applies to the record that is being processed."""

    code = "SZ211"


class StoreClosed(TaskError):
    """A store was used after `close()`, by another task, or written outside of a hook."""

    code = "SZ212"


class UnknownOutput(TaskError):
    """A task sent to a topic that `outputs` does not list."""

    code = "SZ213"


# -- Kafka and Spark -------------------------------------------------------------------------------------------------------------


class LogError(SamzapyError):
    """A Kafka request was refused or failed."""

    code = "SZ300"


class ClusterUnreachable(LogError):
    """No broker (or no Spark master) answered in time."""

    code = "SZ301"
    exit_code = exit_codes.UNREACHABLE


class NoLeader(ClusterUnreachable):
    """No broker leads a partition: the brokers that hold it are down."""

    code = "SZ307"


class RegistryUnreachable(ClusterUnreachable):
    """The Schema Registry did not answer, or something that is no Schema Registry did. No record is at fault: containers start over at the last commit
    until it answers."""

    code = "SZ308"


class TopicMissing(LogError):
    """A topic that the job needs does not exist."""

    code = "SZ302"
    exit_code = exit_codes.UNREACHABLE


class TopicMisconfigured(LogError):
    """One of the job's own topics has settings with which state could be lost."""

    code = "SZ303"


class NotAuthorized(LogError):
    """Kafka's access control denied an operation that the job needs."""

    code = "SZ304"
    exit_code = exit_codes.UNREACHABLE


class NotAuthenticated(LogError):
    """The brokers refused the login: user, password, mechanism or token."""

    code = "SZ305"
    exit_code = exit_codes.UNREACHABLE


class TlsFailed(LogError):
    """No secure connection: the broker's certificate is not accepted, or only one of broker and client uses TLS."""

    code = "SZ306"
    exit_code = exit_codes.UNREACHABLE


class TransactionAborted(LogError):
    """The transaction must be aborted: none of its records becomes visible. Uncommitted work is dropped; the inputs are read again."""

    code = "SZ310"


class RecordRejected(TransactionAborted):
    """Kafka refused a record of the transaction for its size, its timestamp, or the topic's rules. Sending it again would fail again.

    Attributes:
        topic: the topic that refused it; "" if that is not known.
    """

    code = "SZ315"

    def __init__(self, message: str, remedy: str = "", topic: str = "") -> None:
        super().__init__(message, remedy)
        self.topic = topic


class TimestampRefused(TransactionAborted):
    """Kafka refused the time that this host's clock gave a record: this host's clock or a broker's is wrong. No record is at fault."""

    code = "SZ316"


REFUSED = (RecordRejected, TimestampRefused)  # what a record was refused with, whoever is at fault


class InDoubt(LogError):
    """A request failed and its effect at the broker is unknown: drop uncommitted work, take ownership again, restore."""

    code = "SZ311"


class Fenced(LogError):
    """The broker no longer accepts this producer: another took its transactional id, or its transaction timed out. Ownership must be checked."""

    code = "SZ312"
    exit_code = exit_codes.OWNED_ELSEWHERE


class Superseded(LogError):
    """Another process owns this container's tasks. This process exits; its uncommitted work never becomes visible."""

    code = "SZ313"
    exit_code = exit_codes.OWNED_ELSEWHERE


class OwnedElsewhere(LogError):
    """Another run of the job is alive."""

    code = "SZ314"
    exit_code = exit_codes.OWNED_ELSEWHERE


class OffsetOutOfRange(LogError):
    """The next offset of an input is outside the range that the topic holds.

    Attributes:
        topic: the topic that was being read; "" where a start found it.
    """

    code = "SZ320"

    def __init__(self, message: str, remedy: str = "", topic: str = "") -> None:
        super().__init__(message, remedy)
        self.topic = topic


class BatchUnreadable(LogError):
    """A batch of records cannot be decompressed within the memory allowed for it (`kafka.receive.message.max.bytes`), or is damaged.

    Attributes:
        topic, partition: where it is.
        begin, end: its unread offsets: from `begin`, `end` not included.
    """

    code = "SZ321"

    def __init__(self, topic: str, partition: int, begin: int, end: int, why: str) -> None:
        last = end - 1
        offsets = f"@{begin}" + (f"..{last}" if last > begin else "")
        super().__init__(
            f"{topic}[{partition}]{offsets} cannot be read: it needs more memory to decompress than is allowed, or is damaged ({why}).",
            "To read it, allow more memory: `kafka: {receive.message.max.bytes: 1000000000}` (the default is 100000000); "
            f"to skip the whole batch, all {end - begin} offsets, set `on_error: {{then: skip}}` or dead_letter.",
        )
        self.topic, self.partition, self.begin, self.end = topic, partition, begin, end


class CodeReplaced(LogError):
    """A record between two stages cannot be read, and the program's files have changed since this container imported them. The container is started
    again, with the current code."""

    code = "SZ322"


class StateRefused(SamzapyError):
    """Starting could lose or duplicate records: a checkpoint is lost, or a changelog is truncated or replaced."""

    code = "SZ330"


class LauncherError(SamzapyError):
    """A container could not be started (no slot, no Java, Spark refused)."""

    code = "SZ340"
    exit_code = exit_codes.UNREACHABLE


# -- samzapy itself -------------------------------------------------------------------------------------------------------------------


class OutputFailed(SamzapyError):
    """A command's standard output cannot be written."""

    code = "SZ350"


class InternalError(SamzapyError):
    """A check inside samzapy failed: a bug. It stops instead of continuing wrongly."""

    code = "SZ900"


def check(condition: bool, promise: str) -> None:
    """Check an invariant, in production too.

    Raises:
        InternalError: when `condition` is false; `promise` says what should have held.
    """
    if not condition:
        raise InternalError(
            f"internal error, this does not hold: {promise}.", "Please report this with the log; restarting is safe: only committed work is kept."
        )
