"""Builds the pipelines of persistent queries, in the engine process.

A query's definition is the history of the commands that it depends on, and its own: replaying them gives the part of
the catalogue it was planned with, and so the same plan, in any process. Start at `KsqlBuilder`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moldau.core.errors import MoldauError
from moldau.core.ids import TopicPartition
from moldau.ksql.schemas import prepared_serdes
from moldau.ksql.settings import KsqlSettings
from moldau.ksql.statements.state import AppliedCommand, HostedQuery, ServerState
from moldau.ksql.user_functions import user_functions
from moldau.pipeline.ir.copartitioning import partition_counts
from moldau.pipeline.ir.nodes import OffsetReset
from moldau.pipeline.ir.rewrites.foreign_key import lower_foreign_key_joins
from moldau.pipeline.ksql.execution.engine import PersistentQuery
from moldau.pipeline.runtime.engine import Engine
from moldau.pipeline.runtime.files import LocalFiles
from moldau.pipeline.runtime.hosting.host import PipelineSpec
from moldau.pipeline.runtime.identity import PipelineIdentity, PipelineOptions
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.reset import reset_pipeline
from moldau.pipeline.runtime.kafka.wiring import kafka_pipeline
from moldau.pipeline.runtime.pipeline import Pipeline
from moldau.pipeline.spark.explain import explain

__all__ = [
    "KIND",
    "KsqlBuilder",
    "explained_plan",
    "hosted_query",
    "pipeline_options",
    "pipeline_spec",
    "query_identity",
]

KIND = "ksql"
DEFAULT_INTERVAL_MS = 0


def pipeline_spec(hosted: HostedQuery, settings: KsqlSettings) -> PipelineSpec:
    """The query as an engine process is told about it: JSON only."""
    return PipelineSpec(
        name=f"{settings.query_prefix}{hosted.query_id}",
        kind=KIND,
        definition={
            "queryId": hosted.query_id,
            "settings": dict(settings.given),
            "history": [applied.document() for applied in hosted.history],
        },
        is_paused=hosted.is_paused,
    )


def query_identity(settings: KsqlSettings, query_id: str) -> PipelineIdentity:
    """The names of a query's group, transactional id, progress topic and folder."""
    own = f"{settings.query_prefix}{query_id}"
    folder = settings.state_folder / query_id
    return PipelineIdentity(
        name=own,
        group_id=own,
        transactional_id=own,
        progress_topic=f"{own}-progress",
        folder=str(folder),
        local_folder=Path(folder),
        kind="query",
        name_setting="query id",
    )


REALTIME_SPARK: Mapping[str, str] = {"spark.sql.shuffle.partitions": "2"}
"""Each part of the state is a task that runs all the time, so that there are few of them."""


class KsqlBuilder:
    """Makes pipelines of queries, all on one Spark session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def build(self, spec: PipelineSpec) -> Pipeline:
        settings, hosted = hosted_query(spec)
        options = pipeline_options(settings, hosted.properties, hosted.start_offsets)
        if options.is_realtime:
            self._engine.expect_realtime()
        return kafka_pipeline(
            prepared_serdes(hosted.query.topology, settings),
            query_identity(settings, hosted.query_id),
            _clients(settings),
            options,
            self._engine,
        )

    def delete_state(self, spec: PipelineSpec) -> None:
        settings = KsqlSettings.of(spec.definition["settings"])
        identity = query_identity(settings, spec.definition["queryId"])
        reset_pipeline(identity, _clients(settings), LocalFiles, force=True)


def hosted_query(spec: PipelineSpec) -> tuple[KsqlSettings, HostedQuery]:
    """The server's settings and the query, planned from its history; raises `MoldauError`."""
    settings = KsqlSettings.of(spec.definition["settings"])
    state = ServerState(settings.statement_settings, functions=user_functions(settings))
    query_id = spec.definition["queryId"]
    try:
        for document in spec.definition["history"]:
            state.apply_again(AppliedCommand.of_document(document))
    except MoldauError as error:
        raise MoldauError(f"the query {query_id} cannot be planned again: {error}") from error
    return settings, state.queries[query_id]


def explained_plan(
    planned: PersistentQuery, settings: KsqlSettings, properties: Mapping[str, Any], counts: Mapping[str, int]
) -> str:
    """How Spark would run a query, with these partitions of its topics."""
    options = pipeline_options(settings, properties, {})
    latency = {"moldau.latency": "realtime"} if options.is_realtime else {}
    partitions = partition_counts(lower_foreign_key_joins(planned.topology.nodes), dict(counts))
    return explain(planned.topology, {**options.task_settings, **latency}, partitions)


def _clients(settings: KsqlSettings) -> KafkaClients:
    secured = settings.client_properties
    return KafkaClients(
        bootstrap_servers=settings["bootstrap.servers"], admin=secured, consumer=secured, producer=secured
    )


def pipeline_options(
    settings: KsqlSettings, given: Mapping[str, Any], start_offsets: Mapping[str, Mapping[str, int]]
) -> PipelineOptions:
    """How a query runs that was accepted with these properties."""
    properties: Mapping[str, Any] = {**settings.query_defaults, **given}
    guarantee = str(properties.get("processing.guarantee", "exactly_once_v2"))
    is_realtime = str(properties.get("moldau.latency", "")).lower() == "realtime"
    reset = str(properties.get("auto.offset.reset", "latest")).lower()
    cache = properties.get("statestore.cache.max.bytes", properties.get("cache.max.bytes.buffering", 0))
    return PipelineOptions(
        is_exactly_once=guarantee.startswith("exactly_once") and not is_realtime,
        is_realtime=is_realtime,
        interval_ms=int(properties.get("commit.interval.ms", DEFAULT_INTERVAL_MS)) or None,
        offset_reset=OffsetReset.EARLIEST if reset == "earliest" else OffsetReset.LATEST,
        first_offsets={
            TopicPartition(topic, int(number)): offset
            for topic, offsets in start_offsets.items()
            for number, offset in offsets.items()
        },
        spark={
            **(REALTIME_SPARK if is_realtime else {}),
            **{name: str(value) for name, value in properties.items() if name.startswith("spark.")},
        },
        task_settings={
            **_task_settings(properties),
            **_failure_settings(settings),
            "statestore.cache.max.bytes": str(cache),
        },
    )


def _failure_settings(settings: KsqlSettings) -> dict[str, str]:
    """What becomes of records that cannot be read, and where failures are written."""
    is_fatal = settings["ksql.fail.on.deserialization.error"]
    found = {"deserialization.exception.handler": "fail" if is_fatal else "continue"}
    if settings["ksql.logging.processing.topic.auto.create"] or settings["ksql.logging.processing.topic.name"]:
        found["ksql.logging.processing.topic.name"] = settings.processing_log_topic
    return found


def _task_settings(properties: Mapping[str, Any]) -> dict[str, str]:
    """Settings that tasks read by Kafka Streams' names."""
    names = ("default.timestamp.extractor", "max.task.idle.ms")
    return {name: str(properties[name]) for name in names if name in properties}
