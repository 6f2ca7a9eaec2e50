"""A Streams application as a pipeline: the names, clients and options that follow from its settings.

The names must stay stable: an application restarted with the same `application.id`, also in another version, must find
its group, its transactional id, its progress and its folder. Start at `identity_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from moldau.pipeline.ir.topology import Topology
from moldau.pipeline.runtime.engine import REALTIME_SLOTS, Engine, shared_engine
from moldau.pipeline.runtime.files import Files, local_path
from moldau.pipeline.runtime.identity import PipelineIdentity, PipelineOptions
from moldau.pipeline.runtime.kafka.clients import KafkaClients
from moldau.pipeline.runtime.kafka.reset import reset_pipeline
from moldau.pipeline.runtime.kafka.wiring import kafka_pipeline
from moldau.pipeline.runtime.pipeline import Pipeline
from moldau.streams.settings import Latency, StreamsSettings, default_state_dir

__all__ = ["clients_of", "identity_of", "options_of", "reset_application", "streams_pipeline"]


def identity_of(settings: StreamsSettings) -> PipelineIdentity:
    """The names of a pipeline, all derived from the `application.id`, as in Kafka Streams."""
    own = settings.application_id
    local = local_path(settings.state_dir) or Path(default_state_dir())
    return PipelineIdentity(
        name=own,
        group_id=own,
        transactional_id=own,
        progress_topic=f"{own}-progress",
        folder=f"{settings.state_dir.rstrip('/')}/{own}",
        local_folder=local / own,
        kind="application",
        name_setting="application.id",
        reset_command=f"moldau streams reset --application-id {own}",
    )


def clients_of(settings: StreamsSettings) -> KafkaClients:
    """The bootstrap servers, and the properties of each kind of client."""
    return KafkaClients(
        bootstrap_servers=settings.bootstrap_servers,
        admin=settings.client_properties("admin"),
        consumer=settings.client_properties("consumer"),
        producer=settings.client_properties("producer"),
    )


REALTIME_SPARK: Mapping[str, str] = {"spark.sql.shuffle.partitions": "2"}
"""Each part of the state is a task that runs all the time, so that there are few of them."""


def options_of(settings: StreamsSettings) -> PipelineOptions:
    return PipelineOptions(
        is_exactly_once=settings.is_exactly_once,
        is_realtime=settings.latency is Latency.REALTIME,
        interval_ms=settings.commit_interval_ms,
        max_batch_records=settings.max_batch_records,
        fails_on_data_loss=settings.fails_on_data_loss,
        offset_reset=settings.offset_reset,
        dead_letter_topic=settings.dead_letter_topic,
        replication_factor=settings.replication_factor,
        store_server=settings.application_server,
        spark={**(REALTIME_SPARK if settings.latency is Latency.REALTIME else {}), **settings.spark},
        task_settings=settings.given,
    )


def streams_pipeline(topology: Topology, settings: StreamsSettings, engine: Engine | None = None) -> Pipeline:
    """The pipeline of an application with complete serdes; without `engine`, the engine of the process runs it."""
    engine = engine or _engine_of(settings)
    return kafka_pipeline(topology, identity_of(settings), clients_of(settings), options_of(settings), engine)


def _engine_of(settings: StreamsSettings) -> Engine:
    """The engine of the process; one that is started for a real-time pipeline has room for many tasks."""
    is_realtime = settings.latency is Latency.REALTIME
    threads = settings.threads or (REALTIME_SLOTS if is_realtime else None)
    return shared_engine({**(REALTIME_SPARK if is_realtime else {}), **settings.spark}, threads)


def reset_application(settings: StreamsSettings, *, force: bool = False, keeps_reset: bool = False) -> list[str]:
    """Delete an application's state directory, group and progress; returns what was removed, see `reset_pipeline`."""

    def remote_files() -> Files:
        from moldau.pipeline.spark.driver.hadoop_files import HadoopFiles

        return HadoopFiles(shared_engine(settings.spark, settings.threads).session())

    return reset_pipeline(
        identity_of(settings), clients_of(settings), remote_files, force=force, keeps_reset=keeps_reset
    )
