"""The `samzapy` command, and `python -m samzapy`.

A Ctrl-C never shows a traceback. Before anything large is imported a handler is in place that says one line and leaves with 130: an import
has nothing to clean up, and an exception raised inside of one may be swallowed there or come out as something else. While a command runs,
Ctrl-C is `KeyboardInterrupt`, so that it cleans up, or what the command makes of it. When it has ended, its result stands.
"""

from __future__ import annotations

import os
import select
import signal
import sys

from samzapy.cli.interrupt import EXIT_OF_SIGINT, INTERRUPTED

STDERR = 2


def main() -> None:
    """Runs the command line and exits with the command's exit code."""
    _open_closed_streams()
    # Ctrl-C is ignored for what a shell without job control starts in its background; a run takes the signal even so, from here to its end
    takes_signals = signal.getsignal(signal.SIGINT) is signal.default_int_handler or sys.argv[1:2] == ["run"]
    if takes_signals:
        signal.signal(signal.SIGINT, _leave)
    from samzapy.cli.commands import import_command
    from samzapy.cli.main import exit_code
    from samzapy.cli.signals_and_threads import end
    from samzapy.config import user_import

    user_import.keeps_stdout = True
    import_command(sys.argv[1:])

    if not takes_signals:
        end(exit_code(sys.argv[1:]))
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = exit_code(sys.argv[1:])
        signal.signal(signal.SIGINT, lambda *_: os._exit(code))
    except KeyboardInterrupt:  # between two lines of this function, or a second one while the first is told
        _leave()
    end(code)


def _open_closed_streams() -> None:
    """Standard streams that this process was started without lead nowhere. Else the next file or socket would get the number of such a stream, and
    what a library writes to standard error would go into it. Standard output refuses what is written to it: a command whose result nobody gets fails."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def _leave(*_: object) -> None:
    """Without an exception, and without what is left to do at exit, which takes time and may be interrupted again."""
    if select.select([], [STDERR], [], 0)[1]:  # else nobody reads it, and this would wait for a reader
        os.write(STDERR, INTERRUPTED.encode())
    os._exit(EXIT_OF_SIGINT)


if __name__ == "__main__":
    main()
