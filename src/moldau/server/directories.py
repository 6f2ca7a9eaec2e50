"""A node's log directories: reading their identity, and formatting new ones.

A node loads its directories at start (`adopt`); `kafka-storage format` prepares them (`format_directories`).
`meta.properties` is written last, so a directory counts as formatted only once it is complete.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moldau.controller.features import METADATA_VERSION, SUPPORTED
from moldau.controller.metadata_log import BOOTSTRAP_FILE, METADATA_PARTITION
from moldau.controller.quorum.records import voters_records
from moldau.controller.snapshots import SnapshotId, encode_snapshot, save_snapshot
from moldau.core.clock import Clock, SystemClock
from moldau.core.config import BrokerConfig
from moldau.core.config.sections import NodeSettings, StorageSettings
from moldau.core.errors import InvalidConfigError, MoldauError, StartupError
from moldau.core.ids import random_uuid, render_uuid
from moldau.log.directories.meta_properties import (
    META_FILE,
    MetaProperties,
    check_agreement,
    load_meta_properties,
    save_meta_properties,
)
from moldau.log.files import Files
from moldau.protocol.metadata_records import FeatureLevelRecord, MetadataRecord
from moldau.raft.voter_history import BEFORE_THE_LOG, VoterState
from moldau.raft.voters import ReplicaKey, Voter, VoterSet
from moldau.server.cluster.controller_voters import controller_endpoint, parse_initial_controllers
from moldau.server.metadata_versions import default_level, features_at, name_of

__all__ = [
    "FormatError",
    "FormatPlan",
    "adopt",
    "all_directories",
    "check_feature",
    "format_directories",
    "has_id",
    "log_directories",
    "metadata_directory",
    "node_id_for",
]


def log_directories(config: BrokerConfig) -> list[str]:
    return [os.path.abspath(path) for path in config.section(StorageSettings).log_dirs]


def metadata_directory(config: BrokerConfig) -> str:
    """The directory of the metadata log: `metadata.log.dir`, or the first log directory."""
    chosen = config.section(StorageSettings).metadata_log_dir
    return os.path.abspath(chosen) if chosen else log_directories(config)[0]


def all_directories(config: BrokerConfig) -> list[str]:
    """The metadata directory first, then the log directories."""
    return list(dict.fromkeys([metadata_directory(config), *log_directories(config)]))


def node_id_for(config: BrokerConfig, files: Files | None = None) -> int:
    """The node id when the file sets none: that of its directories, or the first above the reserved ids.

    Only ZooKeeper-mode files may leave it out (`broker.id.generation.enable`).
    """
    if not config.is_generated_id_allowed:
        raise StartupError("node.id is missing; each node of a cluster has a number of its own, for example node.id=1")
    for path in log_directories(config):
        known = load_meta_properties(files or Files(), path)
        if known is not None:
            return known.node_id
    return config.section(StorageSettings).reserved_broker_max_id + 1


def has_id(config: BrokerConfig, files: Files | None = None) -> bool:
    """Whether the node has an id: it may not have one (`node_id_for`), or a directory says it."""
    return not config.is_generated_id_allowed or any(
        load_meta_properties(files or Files(), path) is not None for path in log_directories(config)
    )


def adopt(
    files: Files, directories: Sequence[str], node_id: int, *, may_format: bool, cluster_id: str | None = None
) -> dict[str, MetaProperties]:
    """Load each directory's identity, formatting new ones if allowed; all must belong to one node and cluster.

    If all directories are new, the node uses `cluster_id`, or generates one.
    """
    known = {path: load_meta_properties(files, path) for path in directories}
    formatted = {path: meta for path, meta in known.items() if meta is not None}
    missing = [path for path in directories if path not in formatted]
    if missing and not formatted and not may_format:
        raise StartupError(
            f"{missing[0]} is not formatted; run kafka-storage format -t $(kafka-storage random-uuid) -c <file>, "
            "or set moldau.auto.format=true"
        )
    if formatted:
        cluster_id = check_agreement(formatted, node_id)
    cluster_id = cluster_id or render_uuid(random_uuid())
    for path in missing:
        try:
            formatted[path] = save_meta_properties(files, path, cluster_id, node_id)
        except OSError as error:
            raise StartupError(f"cannot format {path}: {error.strerror}") from None
    return formatted


# Formatting


class FormatError(MoldauError):
    """The directories cannot be formatted as requested; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatPlan:
    cluster_id: str
    metadata_version: int = field(default_factory=default_level)
    features: Mapping[str, int] = field(default_factory=dict)
    """Feature levels that differ from the defaults of the metadata.version."""
    credentials: Sequence[MetadataRecord] = ()
    ignores_formatted: bool = False
    is_dynamic: bool = False
    """Whether the voters of a controller are kept in its metadata log: this node alone, or `initial_controllers`."""
    initial_controllers: str | None = None


def format_directories(
    config: BrokerConfig, plan: FormatPlan, *, files: Files | None = None, clock: Clock | None = None
) -> list[str]:
    """Format the directories that are not formatted yet; returns lines that report what was done."""
    files, clock = files or Files(), clock or SystemClock()
    directories = all_directories(config)
    known = {path: load_meta_properties(files, path) for path in directories}
    formatted = {path: meta for path, meta in known.items() if meta is not None}
    _check_identities(formatted, plan.cluster_id, config.node_id)
    if formatted and not plan.ignores_formatted:
        raise FormatError(
            f"Log directory {next(iter(formatted))} is already formatted. Use --ignore-formatted to ignore this "
            "directory and format the others."
        )
    voters = _initial_voters(config, plan)
    records = _first_records(plan)
    done = []
    for path in directories:
        if path not in formatted:
            directory_id = _directory_id(voters, config.node_id) if path == directories[0] else None
            meta = _format(path, plan, config.node_id, records, files, clock, directory_id)
            if path == directories[0] and _keeps_voters(config, plan):
                _save_voters(path, config, voters, meta, files, clock)
            kind = _kind(path == directories[0], plan.is_dynamic)
            done.append(f"Formatting {kind} {path} with metadata.version {name_of(plan.metadata_version)}.")
    return done or ["All of the log directories are already formatted."]


def check_feature(name: str, level: int) -> None:
    """Reject a feature level that this release does not implement."""
    supported = SUPPORTED.get(name)
    if supported is None:
        raise InvalidConfigError(f"Unsupported feature: {name}. Supported features are: {', '.join(sorted(SUPPORTED))}")
    if not supported.min <= level <= supported.max:
        raise InvalidConfigError(f"Feature level {level} is not supported for feature {name}")


def _check_identities(formatted: Mapping[str, MetaProperties], cluster_id: str, node_id: int) -> None:
    for path, meta in formatted.items():
        for key, expected, found in (("cluster.id", cluster_id, meta.cluster_id), ("node.id", node_id, meta.node_id)):
            if expected != found:
                file = os.path.join(path, META_FILE)
                raise FormatError(f"Invalid {key} in: {file}. Expected {expected}, but read {found}")


def _first_records(plan: FormatPlan) -> list[MetadataRecord]:
    levels = {name: level for name, level in features_at(plan.metadata_version).items() if level}
    # The quorum stores its own feature; Kafka rejects it in the metadata records.
    levels.pop("kraft.version", None)
    chosen = {METADATA_VERSION: plan.metadata_version, **levels, **plan.features}
    chosen.pop("kraft.version", None)
    features = [FeatureLevelRecord(name=name, feature_level=level) for name, level in chosen.items()]
    return [*features, *plan.credentials]


def _keeps_voters(config: BrokerConfig, plan: FormatPlan) -> bool:
    """A node that is a broker, too, is a quorum of its own and needs no list of voters."""
    return plan.is_dynamic and config.section(NodeSettings).roles == ["controller"]


def _initial_voters(config: BrokerConfig, plan: FormatPlan) -> Sequence[Voter]:
    """The voters that `--initial-controllers` names; none for `--standalone`, whose directory has no id yet."""
    if not _keeps_voters(config, plan):
        return ()
    if config.value("controller.quorum.voters"):
        raise FormatError(
            "controller.quorum.voters fixes the voters, so they cannot be kept in the metadata log; remove it, or "
            "format without --standalone and --initial-controllers"
        )
    if plan.initial_controllers is None:
        return ()
    listener = next(iter(config.controller_listener_names), "CONTROLLER")
    voters = parse_initial_controllers(plan.initial_controllers, listener)
    if all(one.key.id != config.node_id for one in voters):
        raise FormatError(f"--initial-controllers does not name node {config.node_id}")
    return voters


def _directory_id(voters: Sequence[Voter], node_id: int) -> uuid.UUID | None:
    """The id that the list of voters gives to this node's metadata directory."""
    return next((one.key.directory_id for one in voters if one.key.id == node_id), None)


def _save_voters(  # noqa: PLR0917
    path: str, config: BrokerConfig, voters: Sequence[Voter], meta: MetaProperties, files: Files, clock: Clock
) -> None:
    """Write the snapshot of an empty log, 0-0, which says who votes."""
    alone = [Voter(ReplicaKey(config.node_id, meta.directory_id), (controller_endpoint(config),))]
    state = VoterState(BEFORE_THE_LOG, 1, VoterSet.of(voters or alone))
    now_ms = clock.now_ms()
    batches = encode_snapshot([], epoch=0, last_timestamp_ms=now_ms, now_ms=now_ms, quorum=voters_records(state))
    folder = os.path.join(path, str(METADATA_PARTITION))
    try:
        files.make_directory(folder)
        save_snapshot(files, folder, SnapshotId(0, 0), batches)
    except OSError as error:
        raise FormatError(f"Error while writing to {folder}: {error.strerror}") from None


def _format(  # noqa: PLR0917
    path: str,
    plan: FormatPlan,
    node_id: int,
    records: Sequence[MetadataRecord],
    files: Files,
    clock: Clock,
    directory_id: uuid.UUID | None = None,
) -> MetaProperties:
    try:
        files.make_directory(path)
        now_ms = clock.now_ms()
        content = b"".join(encode_snapshot(records, epoch=0, last_timestamp_ms=now_ms, now_ms=now_ms))
        files.atomic_write(os.path.join(path, BOOTSTRAP_FILE), content)
        return save_meta_properties(files, path, plan.cluster_id, node_id, directory_id)
    except OSError as error:
        raise FormatError(f"Error while writing to {path}: {error.strerror}") from None


def _kind(holds_metadata: bool, is_dynamic: bool) -> str:
    if not holds_metadata:
        return "data directory"
    return "dynamic metadata voter directory" if is_dynamic else "metadata directory"
