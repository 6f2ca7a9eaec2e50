"""The files of a registration point in its `dataDir`: the cluster id, and the registered broker.

The cluster id is in `meta.properties`, as in every directory of a cluster; the broker is in a small JSON file.
Both are replaced atomically and synced before a registration is answered. Start at `RegistrationFiles`.
"""

from __future__ import annotations

import json
import os
import uuid
from typing import Any, Final

from moldau.controller.brokers import BrokerRegistration
from moldau.controller.image import Endpoint
from moldau.controller.registration import RegisteredBroker
from moldau.core.errors import StartupError
from moldau.core.ids import random_uuid, render_uuid
from moldau.log.directories.meta_properties import load_meta_properties, save_meta_properties
from moldau.log.files import FileLock, Files

__all__ = ["NODE_ID", "RegistrationFiles"]

BROKER_FILE: Final = "registered-broker.json"
LOCK_FILE: Final = ".lock"

NODE_ID: Final = 3001
"""The node id for a `zookeeper.properties` file, high enough to leave 0, 1, 2 to brokers."""


class RegistrationFiles:
    def __init__(self, directory: str, files: Files) -> None:
        self._directory = directory
        self._files = files
        self._path = os.path.join(directory, BROKER_FILE)
        self._lock: FileLock | None = None
        self.cluster_id = ""

    def open(self) -> RegisteredBroker | None:
        """Lock the directory, load or generate its cluster id, and load the broker; raises `StartupError`."""
        try:
            self._files.make_directory(self._directory)
            self._lock = self._files.lock(os.path.join(self._directory, LOCK_FILE))
            if self._lock is None:
                raise StartupError(f"dataDir {self._directory} is in use by another process")
            identity = load_meta_properties(self._files, self._directory) or save_meta_properties(
                self._files, self._directory, render_uuid(random_uuid()), NODE_ID
            )
            self.cluster_id = identity.cluster_id
            return self._load_broker()
        except OSError as error:
            raise StartupError(f"cannot use dataDir {self._directory}: {error.strerror or error}") from None

    def _load_broker(self) -> RegisteredBroker | None:
        try:
            return _from_json(json.loads(self._files.read_file(self._path)), self.cluster_id)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise StartupError(
                f"{self._path} cannot be read ({error!r}); restore it from a copy or remove it"
            ) from None

    def save(self, registered: RegisteredBroker) -> None:
        """Write a registration to disk; if this raises `OSError`, the registration must be refused."""
        if registered.cluster_id != self.cluster_id:
            save_meta_properties(self._files, self._directory, registered.cluster_id, NODE_ID)
            self.cluster_id = registered.cluster_id
        self._files.atomic_write(self._path, json.dumps(_to_json(registered), indent=1).encode() + b"\n")

    def close(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def _to_json(registered: RegisteredBroker) -> dict[str, Any]:
    broker = registered.broker
    return {
        "version": 1,
        "broker_id": broker.node_id,
        "incarnation_id": str(broker.incarnation_id),
        "broker_epoch": registered.broker_epoch,
        "endpoints": [endpoint._asdict() for endpoint in broker.endpoints],
        "rack": broker.rack,
        "log_dirs": [str(log_dir) for log_dir in broker.log_dirs],
        "came_from": registered.came_from,
    }


def _from_json(entry: dict[str, Any], cluster_id: str) -> RegisteredBroker:
    if entry["version"] != 1:
        raise ValueError(f"version {entry['version']} is not known")
    broker = BrokerRegistration(
        node_id=int(entry["broker_id"]),
        incarnation_id=uuid.UUID(entry["incarnation_id"]),
        endpoints=tuple(Endpoint(**endpoint) for endpoint in entry["endpoints"]),
        rack=entry["rack"],
        log_dirs=tuple(uuid.UUID(log_dir) for log_dir in entry["log_dirs"]),
    )
    return RegisteredBroker(broker, int(entry["broker_epoch"]), cluster_id, str(entry["came_from"]))
