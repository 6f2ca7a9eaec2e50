"""Reset of a pipeline: removes its state on this machine and in the cluster.

Start at `reset_pipeline`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from moldau.client.admin import Admin
from moldau.client.errors import ClientError
from moldau.client.groups import Groups, is_reset, remove_static_member
from moldau.core.errors import ErrorCode
from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.errors import StreamsError
from moldau.pipeline.runtime.files import Files, LocalFiles
from moldau.pipeline.runtime.folder import PipelineFolder
from moldau.pipeline.runtime.identity import PipelineIdentity
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.cluster import Cluster

__all__ = ["reset_pipeline"]


def reset_pipeline(
    identity: PipelineIdentity,
    clients: KafkaClients,
    remote_files: Callable[[], Files],
    *,
    force: bool = False,
    keeps_reset: bool = False,
) -> list[str]:
    """Delete a pipeline's folder, its group and its progress; returns what was removed.

    Raises `AlreadyRunningError` or `StreamsError` if it is running, or may be: a killed pipeline stays in its group
    until the session times out. `force` removes it from the group. `keeps_reset` keeps offsets that
    kafka-streams-application-reset has set, so that the next start begins there. `remote_files` is called if the folder
    is not on this machine.
    """
    folder = PipelineFolder(identity)
    cluster = Cluster(clients, Topology(()))
    folder.acquire()
    try:
        counts = cluster.partition_counts()
        is_kept = keeps_reset and _has_reset_offsets(cluster.admin, identity.group_id)
        removed = [] if is_kept else _delete_group(cluster.admin, identity, force)
        for topic in filter(partial(_is_own_topic, identity), counts):
            cluster.admin.delete_topics([topic])
            removed.append(f"topic {topic}")
        if not folder.is_local or folder.holds_state:
            folder.delete(LocalFiles() if folder.is_local else remote_files())
            removed.append(f"state in {folder.location}")
    finally:
        folder.release()
        cluster.close()
    return removed


def _is_own_topic(identity: PipelineIdentity, topic: str) -> bool:
    """Whether a topic is the pipeline's progress, or the changelog of a store that it kept in real-time mode."""
    is_changelog = topic.startswith(f"{identity.name}-") and topic.endswith("-changelog")
    return is_changelog or topic == identity.progress_topic


def _has_reset_offsets(admin: Admin, group_id: str) -> bool:
    return is_reset(admin, group_id, Groups(admin).committed(group_id))


def _delete_group(admin: Admin, identity: PipelineIdentity, force: bool) -> list[str]:
    group_id = identity.group_id
    try:
        if force:
            remove_static_member(admin, group_id, identity.name)
        outcome = Groups(admin).delete([group_id])[group_id]
    except ClientError as error:
        outcome = error
    if outcome is None:
        return [f"group {group_id}"]
    if outcome.error_code is ErrorCode.GROUP_ID_NOT_FOUND:
        return []
    if outcome.error_code is ErrorCode.NON_EMPTY_GROUP:
        raise StreamsError(
            f"{identity.title} is running somewhere, or was killed less than a minute ago; stop it, wait, or "
            f"remove it from its group: {identity.reset_command} --force"
        )
    raise outcome
