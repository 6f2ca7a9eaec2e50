"""What the words of a start script mean."""

from __future__ import annotations

from moldau.cli.server.starting import daemon_and_rest, overrides_in


def test_daemon_counts_only_as_the_first_word() -> None:
    assert daemon_and_rest(["-daemon", "server.properties"]) == (True, ["server.properties"])
    assert daemon_and_rest(["--daemon"]) == (True, [])
    assert daemon_and_rest(["server.properties", "-daemon"]) == (False, ["server.properties", "-daemon"])
    assert daemon_and_rest([]) == (False, [])


def test_overrides_may_stand_with_or_without_their_word() -> None:
    assert overrides_in(["--override", "a=1", "-override", "b=2", "c=3"]) == ["a=1", "b=2", "c=3"]
