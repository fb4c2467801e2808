"""What a process exits with: a command, and a container that a job has started.

Each error class of samzapy.api.errors has one of these. A run exits with the code of its first error; container/runner.py says with which code a
container exits, and container/process.py for CRASHED and ORPHANED; cli/main.py and cli/running.py say with which code a command does, and
cli/interrupt.py, which is read before anything else, what it is after Ctrl-C (130).
"""

from __future__ import annotations

OK = 0  # finished, or stopped on request
FAILED = 1  # the job or the command failed, or was refused to protect the job's records and state
CONFIGURATION = 2  # usage or configuration
NOT_RUNNING = 3  # the job is not running, or is still starting
UNREACHABLE = 4  # Kafka or Spark does not answer or refuses access, or a topic is missing
OWNED_ELSEWHERE = 5  # another run owns the job; of a container: it was replaced, or its lease is over
CRASHED = 70  # a container raised what it should have handled
ORPHANED = 71  # a container whose parent process ended
SIGNALLED = 128  # plus the signal's number: killed before the final commit
