"""`ui`: the page of a job, in the browser; of one that does not run it is served by this command."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from samzapy.api.errors import ClusterUnreachable
from samzapy.cli.change import TokenFile
from samzapy.cli.common import JobFile, MoreFiles, Sets, say
from samzapy.cli.coordinator_http import HTTP_TIMEOUT_S
from samzapy.cli.inspect import say_no_answer
from samzapy.cli.job import Job
from samzapy.cli.stopped_job import StillPage
from samzapy.coordinator.token import read_token, token_path
from samzapy.http_client import NO_ANSWER, ask
from samzapy.signing import signed_headers, told_time
from samzapy.web.access import May, derived_token

LONG_AGO_S = 0.0  # a time that is refused in any case: the answer is signed, and carries the time there
ASKED = "/v1/me"


def ui(
    file: JobFile,
    more: MoreFiles = None,
    sets: Sets = None,
    view: Annotated[bool, typer.Option("--view", help="A page that cannot change anything, and shows no stacks, profiles and traces.")] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address only.")] = False,
    token_file: TokenFile = None,
) -> int:
    """The job's page: prints its address, and opens it where there is a display. If the job is not running, it shows what Kafka has about it, until Ctrl-C."""
    with Job(file, more, sets) as job:
        status, url = job.status(), job.url()
        if status is None or url is None:
            if job.starting() is not None or job.silent():
                return say_no_answer(job)
            return _still(job, May.VIEW if view else May.OPERATE, no_open)
        path = token_file or token_path(Path(job.settings.state.dir), job.cluster_id(), str(job.names), status["run_id"])
        token = read_token(path, is_ours=token_file is None)
    check_driver(url, token)
    _show(url, page_address(url, token, May.VIEW if view else May.OPERATE), no_open)
    return 0


def _still(job: Job, may: May, no_open: bool) -> int:
    """The page of a job that does not run, until Ctrl-C."""
    with StillPage(job, may) as page:
        say(f"{job} does not run: this page shows what Kafka has of it, until Ctrl-C; `samzapy run JOB.yaml` starts the job")
        _show(page.url, page.address, no_open)
        with suppress(KeyboardInterrupt):
            page.wait()
    return 0


def _show(url: str, address: str, no_open: bool) -> None:
    print(address, flush=True)
    tunnel = ssh_line(url, os.environ)
    if tunnel:
        say(f"you are logged in over ssh; first run this on your own machine: {tunnel}")
    elif not no_open and has_display(os.environ):
        webbrowser.open(address)


def page_address(url: str, token: str, may: May) -> str:
    """The page's address. The token is in the part that browsers do not send; the page takes it out of the address."""
    return f"{url}/#token={derived_token(token, may)}"


def check_driver(url: str, token: str) -> None:
    """That the server at this URL, which comes from a topic that others may have written, knows the run's token: it signs an answer with it.

    Raises:
        ClusterUnreachable: it does not.
    """
    parts = urlsplit(url)
    headers = signed_headers(token, "GET", ASKED, b"", LONG_AGO_S)
    try:
        answer = ask("GET", parts.hostname or "127.0.0.1", parts.port, ASKED, HTTP_TIMEOUT_S, b"", headers, is_tls=parts.scheme == "https")
    except NO_ANSWER as error:
        raise ClusterUnreachable(f"no coordinator answers at {url}: {error}.", "It may have stopped just now: see `samzapy status JOB.yaml`.") from None
    if told_time(token, ASKED, headers, answer.headers) is None:
        raise ClusterUnreachable(f"what answers at {url} is not this run's driver: it does not know the run's token.", "Check what listens there.")


def has_display(environ: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether a browser can be opened for whoever sits at this terminal."""
    return platform == "darwin" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def ssh_line(url: str, environ: Mapping[str, str]) -> str:
    """What to type on one's own machine to see the page of a job that runs where one is logged in over ssh; "": one is not."""
    where = environ.get("SSH_CONNECTION", "").split()
    port = urlsplit(url).port
    return f"ssh -L {port}:127.0.0.1:{port} {where[2]}" if len(where) == 4 else ""
