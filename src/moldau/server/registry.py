"""A schema registry as a process. The instance is `registry.instance`, its life `server.services`. Start at `run`."""

from __future__ import annotations

from collections.abc import Mapping

from moldau.registry.settings import RegistrySettings

__all__ = ["ROLE", "check", "run"]

ROLE = "schema-registry"
"""By which the process is found among the running ones."""


def check(properties: Mapping[str, str]) -> RegistrySettings:
    """Read and check the settings; raises with one clear line."""
    return RegistrySettings.of(properties)


def run(settings: RegistrySettings, *, log_format: str) -> int:
    """Run until a signal asks to stop; returns the exit status."""
    from moldau.registry.instance import RegistryInstance
    from moldau.server.services import run_services

    return run_services(lambda: [RegistryInstance(settings)], roles=(ROLE,), log_format=log_format)
