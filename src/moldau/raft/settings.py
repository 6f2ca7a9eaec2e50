"""The times and names of a quorum. Kafka's keys begin with `controller.quorum.`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QuorumSettings"]


@dataclass(frozen=True, slots=True)
class QuorumSettings:
    cluster_id: str | None = None
    election_timeout_ms: int = 1000
    """How long a voter waits for a leader, at least; at most twice as long. `election.timeout.ms`."""
    election_backoff_max_ms: int = 1000
    """The longest pause after a lost election. `election.backoff.max.ms`."""
    fetch_timeout_ms: int = 2000
    """How long a follower waits for its leader; a leader gives its followers half as much again. `fetch.timeout.ms`."""
    request_timeout_ms: int = 2000
    """When a request counts as lost. `request.timeout.ms`."""
    retry_backoff_ms: int = 20
    """The pause before a failed request is repeated. `retry.backoff.ms`."""
    fetch_max_wait_ms: int = 500
    """How long a leader may keep a fetch that has nothing to report."""
    snapshot_part_bytes: int = 1024 * 1024
    always_flush: bool = True
    """Whether observers sync what they append, too. Those that may become voters must: a voter's fetch says that it
    did, also about what it got as an observer."""
    bootstrap_servers: int = 0
    """How many servers may be asked for the leader while no voter is known."""

    @property
    def check_quorum_ms(self) -> int:
        return self.fetch_timeout_ms * 3 // 2
