"""What tests of several folders start alike: a broker of the module's own, and a registry on it."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.open_clients import no_client_is_left_open
from xdist.scheduler import LoadScopeScheduling

__all__ = ["no_client_is_left_open"]

if TYPE_CHECKING:
    from moldau.testing import Broker, SchemaRegistry

_SHARING = ("tests/spark", "tests/oracle/streams", "tests/oracle")
"""Folders whose modules share a costly session fixture (a Spark session, data of Apache Kafka): each has one worker."""

_ALONE = (
    "cluster_kill",
    "spark_cluster",
    "streams_kill",
    "realtime_kill",
    "mixed_kill",
    "demo",
    "temporary_files",
    "silent_stop",
)
_APART = tuple(f"tests/spark/test_{name}.py" for name in _ALONE)
"""Modules of those folders that use nothing of what is shared, but start processes of their own, for minutes: whichever
worker is free takes them, so that the one with the Spark session is not the last to end."""

# A shell that starts this in the background has it ignore Ctrl-C, and so would every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The first example pays for imports and caches, and a busy machine makes any of them slow: time is no verdict here.
settings.register_profile("moldau", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("moldau")


class _OneWorkerEach(LoadScopeScheduling):
    """A module is run by one worker, which has its broker; so are the folders that share more."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope_of(nodeid)

    def remove_node(self, node: Any) -> str | None:
        """A test that crashed its worker has failed; the worker that takes the rest does not run it again."""
        crashed: str | None = super().remove_node(node)
        for unit in self.workqueue.values():
            if crashed in unit:
                unit[crashed] = True
        return crashed


def _scope_of(nodeid: str) -> str:
    module = nodeid.partition("::")[0]
    if module in _APART:
        return module
    return next((folder for folder in _SHARING if module.startswith(folder)), module)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _OneWorkerEach:
    return _OneWorkerEach(config, log)


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """A crash shows the thread that crashed. Python may hang for ever when it shows the others, which still run."""
    faulthandler.enable(os.dup(2), all_threads=False)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no worker is left with it at the end."""
    first = (*_SHARING, *_APART)
    items.sort(key=lambda item: [*first, _scope_of(item.nodeid)].index(_scope_of(item.nodeid)))


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker that no other module uses."""
    from moldau.testing import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def moldau_broker() -> Iterator[Broker]:
    """What users get is one broker for all; here each module has its own, so that topics may share names."""
    from moldau.testing import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[SchemaRegistry]:
    """A registry on the module's own broker, in the topic that registries take by default."""
    from moldau.testing import SchemaRegistry

    with SchemaRegistry(broker.bootstrap_servers) as running:
        yield running
