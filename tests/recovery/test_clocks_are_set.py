"""The wall clock of driver and containers is set ahead, back and right again while records keep coming: real processes, whose clock a preloaded
library moves."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.recovery.keys_job import KeysJob

pytestmark = [
    pytest.mark.prove, pytest.mark.kafka, pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"),
]  # fmt: skip
LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>

static const volatile long long *seconds;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("CLOCK_FILE");
    int file = name ? open(name, O_RDONLY) : -1;
    void *place = file < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
    if (place != MAP_FAILED) seconds = place;
}

int clock_gettime(clockid_t which, struct timespec *found) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, found);
    if (!result && seconds && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) found->tv_sec += *seconds;
    return result;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(found, zone);
    if (!result && seconds) found->tv_sec += *seconds;
    return result;
}

/* A wait until a time of this clock: the system would wait by its own clock, and does wait longer if that is set back meanwhile. It looks at the
   moved clock every 50 ms. Returns 1 if the time is over. */
static int next_look(const struct timespec *until, struct timespec *look) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    long long left = (until->tv_sec - now.tv_sec) * 1000000000LL + until->tv_nsec - now.tv_nsec;
    if (left <= 0) return 1;
    long long at = now.tv_nsec + (left > 50000000 ? 50000000 : left);
    look->tv_sec = now.tv_sec - (seconds ? *seconds : 0) + at / 1000000000;
    look->tv_nsec = at % 1000000000;
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, const struct timespec *restrict until) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (until->tv_sec < 1000000000) return real(cond, mutex, until); /* a time of the other clock, since the start of the machine */
    for (;;) {
        struct timespec look = {0, 0};
        int is_over = next_look(until, &look), result = real(cond, mutex, &look);
        if (is_over || result != ETIMEDOUT) return result;
    }
}

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until) {
    static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "cnd_timedwait");
    for (;;) {
        struct timespec look = {0, 0};
        int is_over = next_look(until, &look), result = real(cond, mutex, &look);
        if (is_over || result != thrd_timedout) return result;
    }
}

time_t time(time_t *where) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (where) *where = now.tv_sec;
    return now.tv_sec;
}
"""
STEPS_S = (3000, 0, -3000, 0, -3 * 86_400, 40, 0)  # an hour or more ahead, brokers would refuse the records


def moved_clock(folder: Path) -> tuple[Path, Path]:
    """The library, and the file with the seconds by which it moves the clock."""
    source, library, file = folder / "clock.c", folder / "clock.so", folder / "clock"
    source.write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    file.write_bytes(struct.pack("q", 0))
    return library, file


def set_clock(file: Path, seconds: int) -> None:
    with file.open("r+b") as place:
        place.write(struct.pack("q", seconds))


def test_the_clock_of_all_processes_is_set_and_nothing_is_lost_or_doubled(kafka: str, tmp_path: Path, unique: str) -> None:
    library, file = moved_clock(tmp_path)
    moved = f"export LD_PRELOAD='{library}' CLOCK_FILE='{file}'; "
    job = KeysJob(kafka, tmp_path, unique, 4, containers={"count": 2, "max_restarts": 3}, commit={"interval": "500ms"})
    told = subprocess.run(
        ["sh", "-c", f'{moved} exec "$@"', "sh", sys.executable, "-c", "import time; print(time.time())"], capture_output=True, text=True, check=True
    )
    set_clock(file, 1_000_000)
    later = subprocess.run(
        ["sh", "-c", f'{moved} exec "$@"', "sh", sys.executable, "-c", "import time; print(time.time())"], capture_output=True, text=True, check=True
    )
    assert float(later.stdout) - float(told.stdout) > 999_000, "the library moves the clock"
    set_clock(file, 0)

    with job.running("--local", limit=moved) as run:
        with job.busy():
            run.until_running()
            for seconds in STEPS_S:
                set_clock(file, seconds)
                threading.Event().wait(5.0)
                run.until(lambda s: s["state"] == "RUNNING")
        run.until_caught_up(job.ends())
        assert 0 == run.stop()
    assert [] == job.wrong()
    ends = [line for line in run.log_tail(1_000_000).splitlines() if " (process " in line and "exit code" in line]
    assert all("this host's clock was set back by" in line for line in ends), ends
    assert len(ends) <= 2 * 4, "once for each container and each of four times that it was set back"


def test_records_are_committed_though_the_clock_was_set_back_a_day_and_no_more_records_come(kafka: str, tmp_path: Path, unique: str) -> None:
    library, file = moved_clock(tmp_path)
    moved = f"export LD_PRELOAD='{library}' CLOCK_FILE='{file}'; "
    job = KeysJob(kafka, tmp_path, unique, 2, containers={"count": 2, "max_restarts": 3}, commit={"interval": "4s"})
    with job.running("--local", limit=moved) as run:
        run.until_running()
        job.give(["a b", "c d"])
        threading.Event().wait(1.5)  # they are processed, and not yet committed
        set_clock(file, -86_400)
        started = time.monotonic()
        while len(job.updates()) < job.words:
            assert time.monotonic() - started < 120, f"no commit: {run.log_tail()}"
            threading.Event().wait(1.0)
        print("committed after", time.monotonic() - started)
        run.until(lambda s: s["state"] == "RUNNING")
        assert 0 == run.stop()
    assert [] == job.wrong()
