"""The REST proxy as an ASGI app. Start at `build_app`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moldau.core.prometheus import MetricFamily, MetricType, Series
from moldau.http.app import HttpApp
from moldau.http.calls import Answer, Call
from moldau.http.endpoints import Endpoint
from moldau.http.metrics import HttpMetrics
from moldau.http.negotiation import MediaTypes
from moldau.http.service import build_app as build_service
from moldau.rest.errors import render_error
from moldau.rest.media_types import SERVICE
from moldau.rest.proxy import Proxy
from moldau.rest.routes import documents
from moldau.rest.routes.consumers import Consumers
from moldau.rest.routes.topics import Topics
from moldau.rest.routes.v3_acls import Acls
from moldau.rest.routes.v3_cluster import ClusterResources
from moldau.rest.routes.v3_configs import Configs
from moldau.rest.routes.v3_groups import ConsumerGroups
from moldau.rest.routes.v3_records import Records
from moldau.rest.routes.v3_tail import Tail

__all__ = ["build_app"]

V2_RESOURCES = (Topics, Consumers)
V3_RESOURCES = (ClusterResources, Configs, ConsumerGroups, Acls, Records, Tail)


def build_app(proxy: Proxy) -> HttpApp:
    """The app over a proxy, whose owner starts and stops it."""
    settings = proxy.settings
    resources = [
        *(V2_RESOURCES if settings["api.v2.enable"] else ()),
        *(V3_RESOURCES if settings["api.v3.enable"] else ()),
    ]
    endpoints = [endpoint for resource in resources for endpoint in resource(proxy).endpoints()]
    metrics = _RestMetrics(proxy)
    return build_service(
        [*endpoints, _ready_endpoint(proxy)],
        title="moldau REST proxy",
        description="Topics, records and consumer groups of a Kafka cluster over HTTP: API versions 1, 2 and 3.",
        media_types=SERVICE,
        render_error=render_error,
        health=lambda: _health(proxy),
        metrics=metrics,
        max_body_bytes=settings["size.limit.filter.max.request.body.size"],
    )


def _health(proxy: Proxy) -> Mapping[str, Any]:
    """Healthy as long as it answers: whether brokers do is what `/readyz` tells."""
    return {"healthy": True, "cluster_id": proxy.cluster.cluster_id, "consumer_instances": len(proxy.instances)}


def _ready_endpoint(proxy: Proxy) -> Endpoint:
    async def show(_call: Call) -> Answer:
        found = await proxy.cluster.description()
        return Answer({"ready": True, "cluster_id": found.cluster_id, "brokers": len(found.nodes)})

    return Endpoint(
        method="GET",
        path="/readyz",
        handle=show,
        summary="Whether a broker answers.",
        reply=documents.OBJECT,
        media_types=MediaTypes.always("application/json"),
        refusals={503: "None does (50302)."},
        is_public=True,
    )


class _RestMetrics(HttpMetrics):
    """Requests by endpoint, and Confluent's names for those of all endpoints together."""

    def __init__(self, proxy: Proxy) -> None:
        super().__init__("moldau_rest", lambda: _gauges(proxy), lambda: self._own_families(proxy))
        self._all_requests = 0
        self._all_seconds = 0.0
        self._errors: dict[str, int] = {}

    def count(self, method: str, path: str, status: int, seconds: float) -> None:
        super().count(method, path, status, seconds)
        self._all_requests += 1
        self._all_seconds += seconds
        if status >= 400:
            kind = f"{status // 100}xx"
            self._errors[kind] = self._errors.get(kind, 0) + 1

    def _own_families(self, proxy: Proxy) -> Iterator[MetricFamily]:
        name = "kafka_rest_jersey_metrics_request"
        average_ms = 1000 * self._all_seconds / self._all_requests if self._all_requests else 0.0
        yield _counter(f"{name}_total", self._all_requests, "Requests answered.")
        errors = [Series((("http_status_code", kind),), count) for kind, count in sorted(self._errors.items())]
        yield MetricFamily(f"{name}_error_total", MetricType.COUNTER, "Requests answered with an error.", errors)
        yield MetricFamily(
            f"{name}_latency_avg", MetricType.GAUGE, "Milliseconds until an answer begins.", [Series((), average_ms)]
        )
        yield _counter("moldau_rest_records_produced_total", proxy.producer.sent_records, "Records stored.")
        yield _counter("moldau_rest_records_failed_total", proxy.producer.failed_records, "Records not stored.")
        yield _counter("moldau_rest_consumer_instances_expired_total", proxy.instances.expired, "Instances removed.")


def _counter(name: str, value: float, text: str) -> MetricFamily:
    return MetricFamily(name, MetricType.COUNTER, text, [Series((), value)])


def _gauges(proxy: Proxy) -> Mapping[str, float]:
    return {
        "consumer_instances": len(proxy.instances),
        "consumer_clients": proxy.instances.clients,
        "consumer_closing": proxy.instances.closing,
        "produce_streams": proxy.open_streams,
        "tails": proxy.tails,
    }
