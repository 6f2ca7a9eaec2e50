from __future__ import annotations

import json

from moldau.registry.leadership import Assignment, InstanceIdentity, decode_assignment, elect

FIRST = InstanceIdentity("a.example", 8081)
SECOND = InstanceIdentity("b.example", 8081)


def test_an_instance_says_of_itself_what_other_registries_read() -> None:
    assert json.loads(FIRST.encode()) == {
        "version": 1,
        "host": "a.example",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
    }
    assert InstanceIdentity.decode(FIRST.encode()) == FIRST
    assert InstanceIdentity("::1", 8081).url == "http://[::1]:8081"


def test_what_others_say_is_read_with_patience() -> None:
    assert InstanceIdentity.decode(b'{"host":"h","port":1,"later":true}') == InstanceIdentity("h", 1)
    for content in (b"", b"[]", b"{}", b'{"host":"h","port":"x"}', b"\xff"):
        assert InstanceIdentity.decode(content) is None


def test_the_eligible_member_with_the_smallest_url_leads() -> None:
    members = {"m1": SECOND.encode(), "m2": FIRST.encode(), "m3": b"nonsense"}
    assert elect(members) == Assignment("m2", FIRST)
    shy = FIRST._replace(is_eligible=False)
    assert elect({"m1": SECOND.encode(), "m2": shy.encode()}) == Assignment("m1", SECOND)
    assert elect({"m2": shy.encode()}) == Assignment()


def test_two_members_with_one_url_are_an_error() -> None:
    assert elect({"m1": FIRST.encode(), "m2": FIRST.encode()}).error == 1


def test_an_assignment_survives_its_bytes() -> None:
    for assignment in (Assignment("m", FIRST), Assignment(), Assignment("m", FIRST, 1)):
        assert decode_assignment(assignment.encode()) == assignment
    assert json.loads(Assignment("m", FIRST).encode())["master_identity"]["host"] == "a.example"
    for content in (b"", b"[]", b"nonsense", b'{"error":"x"}'):
        assert decode_assignment(content) == Assignment()
