"""Who has to go when somebody comes."""

from __future__ import annotations

from samzapy.coordinator.door import GRACE_S, Door, connections_taken, peer_of
from samzapy.coordinator.host_names import HostNames


def test_beyond_the_limit_the_longest_that_has_not_asked_goes() -> None:
    door = Door(6)
    asked, _ = door.enter("a", 0.0)
    asked.has_asked = True
    idle = [door.enter("a", 0.1)[0], door.enter("a", 0.2)[0]]
    assert [door.enter("a", 0.3)[1], door.enter("a", 0.4)[1]] == idle


def test_of_whom_most_are_there_one_goes_first() -> None:
    door = Door(8)
    honest, _ = door.enter("honest", 0.0)
    crowd = [door.enter("crowd", 1.0 + n)[0] for n in range(4)]
    for n, peer in enumerate(("x", "y", "z")):
        assert door.enter(peer, 10.0 + n)[1] is None
    assert door.enter("newcomer", 20.0)[1] is crowd[0]
    assert honest in door._guests


def test_one_peer_has_at_most_half() -> None:
    door = Door(10)
    crowd = [door.enter("crowd", float(n))[0] for n in range(5)]
    assert door.enter("crowd", 5.0)[1] is crowd[0]
    assert door.enter("another", 6.0)[1] is None


def test_who_sent_a_signed_request_is_never_sent_away_nor_is_his_address_first() -> None:
    door = Door(4)
    known, _ = door.enter("container", 0.0)
    assert door.knows(known, 0.0) is None
    second, _ = door.enter("container", 0.1)
    left = [door.enter(peer, 1.0 + n)[1] for n, peer in enumerate(["s", "t", "u", "v", "w", "x"])]
    assert known not in left
    assert second not in left
    assert 3 == len([g for g in left if g is not None])


def test_who_may_only_read_is_counted_too_and_pushes_nobody_else_out() -> None:
    door = Door(4)
    operator, _ = door.enter("a", 0.0)
    assert door.knows(operator, 0.0) is None
    readers = []
    for n in range(6):
        reader, leaves = door.enter("a", 1.0 + n)
        assert leaves is None
        readers.append((reader, door.knows(reader, 1.0 + n, only_reads=True)))
    assert [None] * 4 + [readers[0][0], readers[1][0]] == [leaves for _, leaves in readers]
    assert door.longest(10.0) is readers[2][0]
    assert door.knows(readers[2][0], 10.0) is None  # now it sent a token that may do more
    assert door.longest(10.0) is readers[3][0]
    assert door.knows(operator, 10.0, only_reads=True) is None
    assert not operator.only_reads


def test_an_answer_that_nobody_takes_away_holds_no_place() -> None:
    door = Door(2)
    slow, _ = door.enter("a", 0.0)
    slow.has_asked = True
    fresh, _ = door.enter("b", 0.5)
    fresh.has_asked = True
    assert door.enter("c", GRACE_S + 0.1)[1] is slow


def test_a_guest_that_left_counts_no_more() -> None:
    door = Door(2)
    first, _ = door.enter("a", 0.0)
    door.leave(first)
    door.leave(first)
    door.enter("b", 1.0)
    assert door.enter("c", 2.0)[1] is None


def test_a_network_of_ipv6_is_one_peer() -> None:
    assert peer_of("2001:db8::1") == peer_of("2001:db8::ffff:1")
    assert peer_of("2001:db8::1") != peer_of("2001:db8:0:1::1")
    assert "10.0.0.1" == peer_of("::ffff:10.0.0.1") == peer_of("10.0.0.1")


def test_three_quarters_of_the_files_are_left_to_others() -> None:
    assert (64, 256, 16) == (connections_taken(64, 1024), connections_taken(500, 1024), connections_taken(64, 64))


def test_names_by_which_the_web_may_be_asked() -> None:
    names = HostNames("10.0.0.5", ["status.example"])
    for good in ("localhost", "localhost:80", "127.0.0.1:1", "127.1.2.3", "[::1]:80", "::1", "10.0.0.5:8090", "Status.Example.:80"):
        assert names.allow(good), good
    for bad in (
        "",
        "evil.example",
        "localhost.evil.example",
        "10.0.0.6",
        "status.example.evil",
        "127.0.0.1.evil.example:80",
        "[fe80::1]",
    ):
        assert not names.allow(bad), bad
    assert HostNames("0.0.0.0").allow("192.0.2.7:80")
    assert not HostNames("0.0.0.0").allow("evil.example")
