"""What `samzapy ui` makes sure of before it hands out an address with a token."""

from __future__ import annotations

import pytest

from samzapy.api.errors import ClusterUnreachable
from samzapy.cli.ui import check_driver, has_display, page_address, ssh_line
from samzapy.web.access import May
from tests.page.staged import OPERATE, TOKEN, Served, Stage


def test_only_the_runs_own_driver_is_shown_the_token() -> None:
    with Served(Stage()) as served:
        check_driver(served.url, TOKEN)
        with pytest.raises(ClusterUnreachable, match="is not this run's driver"):
            check_driver(served.url, "another-runs-token")
    with pytest.raises(ClusterUnreachable, match="no coordinator answers"):
        check_driver(served.url, TOKEN)


def test_the_token_is_where_browsers_keep_it() -> None:
    assert f"http://127.0.0.1:1/#token={OPERATE}" == page_address("http://127.0.0.1:1", TOKEN, May.OPERATE)


def test_a_browser_is_opened_where_somebody_sees_it() -> None:
    assert not has_display({}, "linux")
    assert has_display({"DISPLAY": ":0"}, "linux")
    assert "ssh -L 4312:127.0.0.1:4312 10.0.0.2" == ssh_line("http://127.0.0.1:4312", {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"})
    assert "" == ssh_line("http://127.0.0.1:4312", {})
