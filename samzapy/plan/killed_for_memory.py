"""What is said of a container that was killed without a word: whether memory is the likely cause."""

from __future__ import annotations

from dataclasses import replace

from samzapy.model.process_end import ProcessEnd

MIB = 1 << 20
NEAR = 0.9  # of containers.memory


def killed_for_memory(end: ProcessEnd, resident: int | None, budget: int, heard_s: float, kernel_killed: bool) -> ProcessEnd:
    """The end, with what is known of the memory.

    Args:
        resident: bytes of memory that it had when it was last heard of, `heard_s` seconds ago; None: it never said.
        budget: `containers.memory`, in bytes.
        kernel_killed: the kernel counts more processes killed for lack of memory than when this one was started.
    """
    reading = ""
    if resident is not None:
        reading = f"it had {resident / MIB:.0f} MiB of memory when it was last heard of, {heard_s:.1f} s before; containers.memory is {budget / MIB:.0f} MiB"
    if kernel_killed:
        cause = "since it started, the kernel killed a process for lack of memory"
    elif resident is not None and resident >= NEAR * budget:
        cause = "the kernel or the cluster may have killed it for its memory"
    else:
        return replace(end, memory=reading)
    return replace(end, memory="; ".join(part for part in (reading, cause) if part), lacks_memory=True)
