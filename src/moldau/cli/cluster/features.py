"""kafka-features: the feature levels of a cluster, how to change them, and what each release's level is.

Start at `main`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import moldau
from moldau.cli.cluster.controllers import open_node
from moldau.cli.cluster.feature_updates import ACTIONS, add_actions, change_levels, name_and_level, wanted_levels
from moldau.cli.tool import ToolError, run_body, say
from moldau.client.connection import load_properties
from moldau.core.errors import MoldauError
from moldau.core.features import METADATA_VERSION
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.protocol.negotiation import api_versions_request
from moldau.server.metadata_versions import default_level, dependencies_of, features_at, level_of, name_of

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    if not words:
        parser.print_help()
        return 1
    options = parser.parse_args(words)
    return run_body(lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    if options.action == "version-mapping":
        _version_mapping(options.release_version)
        return
    if options.action == "feature-dependencies":
        _feature_dependencies(options.feature)
        return
    if not (options.bootstrap_server or options.bootstrap_controller):
        raise ToolError("one of the arguments --bootstrap-server --bootstrap-controller is required")
    properties = load_properties(options.command_config) if options.command_config else {}
    if options.action in ACTIONS:
        levels = wanted_levels(options)
        with open_node(options, properties) as client:
            change_levels(client, options, levels)
        return
    with open_node(options, properties) as client:
        answer = client.send(ApiKey.API_VERSIONS, api_versions_request())
    say("\n".join(_lines(answer)))


def _lines(answer: Message) -> list[str]:
    finalized = {one.name: one.max_version_level for one in answer.finalized_features}
    epoch = answer.finalized_features_epoch
    lines = []
    for one in sorted(answer.supported_features, key=lambda each: each.name):
        least, most, level = (
            _level(one.name, each) for each in (one.min_version, one.max_version, finalized.get(one.name, 0))
        )
        lines.append(
            f"Feature: {one.name:<42}SupportedMinVersion: {least:<17}SupportedMaxVersion: {most:<17}"
            f"FinalizedVersionLevel: {level:<17}Epoch: {epoch if epoch >= 0 else '-'}"
        )
    return lines


def _level(name: str, level: int) -> str:
    if name != METADATA_VERSION:
        return str(level)
    try:
        return name_of(level) if level else "0"
    except IndexError:
        return f"UNKNOWN [{level}]"


def _version_mapping(release: str | None) -> None:
    try:
        level = default_level() if release is None else level_of(release)
    except MoldauError as error:
        raise ToolError(str(error)) from None
    say(f"metadata.version={level} ({name_of(level)})")
    for name, each in sorted(features_at(level).items()):
        say(f"{name}={each}")


def _feature_dependencies(texts: Sequence[str]) -> None:
    for name, level in map(name_and_level, texts):
        say("\n".join(dependencies_of(name, level)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kafka-features", description="See and change a cluster's feature levels.")
    parser.add_argument("-v", "--version", action="version", version=f"{moldau.__version__} (moldau)")
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--bootstrap-server", metavar="HOST:PORT", help="brokers of the cluster")
    target.add_argument("--bootstrap-controller", metavar="HOST:PORT", help="controllers of the cluster")
    parser.add_argument("--command-config", metavar="FILE", help="client properties, for example for TLS and SASL")
    actions = parser.add_subparsers(dest="action", metavar="COMMAND", required=True)
    actions.add_parser("describe", help="the levels that are supported and in effect")
    add_actions(actions)
    dependencies = actions.add_parser("feature-dependencies", help="the levels of others that a level needs")
    dependencies.add_argument("--feature", action="append", default=[], required=True, metavar="FEATURE=LEVEL")
    mapping = actions.add_parser("version-mapping", help="the levels that belong to a release")
    mapping.add_argument("--release-version", metavar="RELEASE", help="the release, such as 4.0")
    return parser


if __name__ == "__main__":
    sys.exit(main())
