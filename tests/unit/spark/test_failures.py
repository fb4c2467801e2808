"""Spark's stack traces in one line."""

from __future__ import annotations

import pytest

from samzapy.spark.failures import how_it_failed

WORKER_DIED = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure:
Lost task 0.0 in stage 3.0 (TID 3) (127.0.0.1 executor driver):
org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)
\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handle(PythonRunner.scala:1)
Caused by: java.io.EOFException
"""
CANCELLED = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 4 cancelled part of cancelled job group samzapy-container-1 SQLSTATE: XXKDA
"""
EXECUTOR_LOST = """: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1\
 times, most recent\
 failure: Lost task 0.0 in stage 0.0 (TID 0)\
 (127.0.0.2 executor 1): ExecutorLostFailure (executor 1 exited caused by one of the running tasks)\
 Reason: Command exited with code 137
Driver stacktrace:
"""
NOT_INSTALLED = """: org.apache.spark.SparkException: Job aborted due to stage failure: x:\
 org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in read
ModuleNotFoundError: No module named 'samzapy'

\tat org.apache.spark.x
"""
GIVEN_UP = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job 1 cancelled because SparkContext was shut down
"""
CLEANED = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task serialization failed: java.nio.file.NoSuchFileException: /tmp/blockmgr-960c9aad/0c
java.nio.file.NoSuchFileException: /tmp/blockmgr-960c9aad/0c
"""
DELETED = (
    "Spark's directory /tmp/blockmgr-960c9aad was deleted while Spark ran, perhaps by a cleaner of old files: this run can start no container any more. "
    "Run the job again"
)
OTHER = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Something that is new
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WORKER_DIED, "killed or crashed: its Python worker ended without a message"),
        (CANCELLED, "killed: its Spark job was cancelled"),
        (EXECUTOR_LOST, "its executor was lost: Command exited with code 137"),
        (NOT_INSTALLED, "ModuleNotFoundError: No module named 'samzapy'"),
        (GIVEN_UP, "Spark gave the application up"),
        (CLEANED, DELETED),
        (OTHER, "Spark: org.apache.spark.SparkException: Something that is new"),
        ("something else\nand more", "Spark: something else"),
        ("", "Spark: no reason given"),
    ],
)
def test_in_words(text: str, words: str) -> None:
    assert words == str(how_it_failed(text))
