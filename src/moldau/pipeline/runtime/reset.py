"""Beginning anew: what an application has left behind, on this machine and in the cluster, is removed.

Start at `reset_application`.
"""

from __future__ import annotations

from moldau.client.errors import ClientError
from moldau.client.groups import Groups
from moldau.client.wire_groups import is_reset, remove_static_member
from moldau.core.errors import ErrorCode
from moldau.pipeline.runtime.application_folder import ApplicationFolder
from moldau.pipeline.runtime.cluster import Cluster
from moldau.pipeline.runtime.errors import StreamsError
from moldau.pipeline.runtime.progress import progress_topic
from moldau.pipeline.runtime.settings import StreamsSettings

__all__ = ["reset_application"]


def reset_application(settings: StreamsSettings, *, force: bool = False, keeps_reset: bool = False) -> list[str]:
    """Delete an application's state directory, its group and its progress; returns what was removed.

    Raises `AlreadyRunningError` or `StreamsError` where it is running, or may be: a killed one stays in its group for
    a while. `force` takes it out of the group. `keeps_reset` leaves offsets that kafka-streams-application-reset has
    set, for the next start to begin there.
    """
    folder = ApplicationFolder(settings)
    folder.acquire()
    try:
        cluster = Cluster(settings)
        counts = cluster.partition_counts()
        is_kept = keeps_reset and _has_reset_offsets(cluster, settings.application_id)
        removed = [] if is_kept else _forget_group(cluster, settings.application_id, force)
        own = progress_topic(settings.application_id)
        if own in counts:
            cluster.admin.delete_topics([own])
            removed.append(f"topic {own}")
        if not folder.is_local:
            _delete_elsewhere(folder, settings)
        elif folder.holds_state:
            folder.delete()
        else:
            return removed
        removed.append(f"state in {folder.location}")
    finally:
        folder.release()
    return removed


def _has_reset_offsets(cluster: Cluster, group_id: str) -> bool:
    return is_reset(cluster.admin, group_id, Groups(cluster.admin).committed(group_id))


def _forget_group(cluster: Cluster, group_id: str, force: bool) -> list[str]:
    groups = Groups(cluster.admin)
    try:
        if force:
            remove_static_member(cluster.admin, group_id, group_id)
        outcome = groups.delete([group_id])[group_id]
    except ClientError as error:
        outcome = error
    if outcome is None:
        return [f"group {group_id}"]
    if outcome.error_code in _NOT_THERE:
        return []
    if outcome.error_code is ErrorCode.NON_EMPTY_GROUP:
        raise StreamsError(
            f"application {group_id} runs somewhere, or was killed less than a minute ago; stop it, wait, or "
            f"take it out of its group: moldau streams reset --force --application-id {group_id}"
        )
    raise outcome


_NOT_THERE = frozenset({ErrorCode.GROUP_ID_NOT_FOUND})


def _delete_elsewhere(folder: ApplicationFolder, settings: StreamsSettings) -> None:
    from moldau.pipeline.runtime.engine import shared_engine
    from moldau.pipeline.spark.driver.hadoop_files import HadoopFiles

    folder.delete(HadoopFiles(shared_engine(settings.spark, settings.threads).session()))
