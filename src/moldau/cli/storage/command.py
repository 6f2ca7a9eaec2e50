"""kafka-storage: format, info, random-uuid, version-mapping, feature-dependencies.

`server.directories` does the formatting. Start at `main`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from moldau.core.config import BrokerConfig
from moldau.core.errors import InvalidConfigError, MoldauError
from moldau.core.ids import random_uuid, render_uuid
from moldau.server.config import gather
from moldau.server.directories import FormatPlan, check_feature, format_directories
from moldau.server.metadata_versions import default_level, dependencies_of, features_at, level_of, name_of

__all__ = ["main"]

METADATA_VERSION = "metadata.version"


class _Parser(argparse.ArgumentParser):
    """A parser that exits with status 1 on errors, as Kafka's tools do; Python's default is 2."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: error: {message}\n")


def main(argv: Sequence[str] | None = None) -> int:
    try:
        options = _parser().parse_args(argv)
    except SystemExit as ended:
        return int(ended.code or 0)
    try:
        return int(options.run(options))
    except MoldauError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="kafka-storage", description="Format the log directories of a node, and look at them.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command", parser_class=_Parser)

    info = commands.add_parser("info", help="Show the log directories of this node and whether they are formatted.")
    _add_config(info)
    info.set_defaults(run=_info)

    _add_format(commands.add_parser("format", help="Format the log directories of this node."))

    mapping = commands.add_parser("version-mapping", help="Show the feature levels of a release.")
    mapping.add_argument("--release-version", "-r", help="The release, such as 4.0; by default the newest supported.")
    mapping.set_defaults(run=_version_mapping)

    dependencies = commands.add_parser("feature-dependencies", help="Show what a feature level depends on.")
    dependencies.add_argument("--feature", "-f", action="append", default=[], required=True, metavar="FEATURE=LEVEL")
    dependencies.set_defaults(run=_feature_dependencies)

    uuid = commands.add_parser("random-uuid", help="Print a random id, to be a cluster's.")
    uuid.set_defaults(run=_random_uuid)
    return parser


def _add_format(parser: argparse.ArgumentParser) -> None:
    _add_config(parser)
    parser.add_argument(
        "--cluster-id", "-t", required=True, help="The cluster's id; kafka-storage random-uuid makes one."
    )
    parser.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="SCRAM-SHA-256=[name=user,password=secret]",
        help="A user who exists from the beginning. May be repeated.",
    )
    parser.add_argument(
        "--ignore-formatted", "-g", action="store_true", help="Pass over directories that are formatted already."
    )
    parser.add_argument(
        "--release-version",
        "-r",
        help=f"The release whose feature levels apply; by default {name_of(default_level())}.",
    )
    parser.add_argument(
        "--feature", "-f", action="append", default=[], metavar="FEATURE=LEVEL", help="Another level for one feature."
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument("--standalone", "-s", action="store_true", help="This node alone is the quorum.")
    quorum.add_argument(
        "--no-initial-controllers", "-N", action="store_true", help="The quorum is found when the node starts."
    )
    quorum.add_argument("--initial-controllers", "-I", metavar="ID@HOST:PORT:DIRECTORY,...", help="The first voters.")
    parser.set_defaults(run=_format)


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", required=True, type=Path, help="The node's server.properties.")


def _load(path: Path) -> BrokerConfig:
    return BrokerConfig(gather(defaults={}, file=path, environ=os.environ, overrides=()))


def _format(options: argparse.Namespace) -> int:
    from moldau.cli.storage.scram import parse_credential

    config = _load(options.config)
    _check_quorum(options.initial_controllers, config)
    features = dict(_feature(text) for text in options.feature)
    level = level_of(options.release_version) if options.release_version else default_level()
    if METADATA_VERSION in features:
        if options.release_version:
            raise InvalidConfigError(f"Use --release-version or --feature {METADATA_VERSION}, not both.")
        level = features.pop(METADATA_VERSION)
    plan = FormatPlan(
        cluster_id=options.cluster_id,
        metadata_version=level,
        features=features,
        credentials=[parse_credential(text) for text in options.add_scram],
        ignores_formatted=options.ignore_formatted,
        is_dynamic=options.standalone or options.initial_controllers is not None,
        initial_controllers=options.initial_controllers,
    )
    for line in format_directories(config, plan):
        print(line)
    return 0


def _check_quorum(initial_controllers: str | None, config: BrokerConfig) -> None:
    """A node that is a broker, too, is a quorum of its own."""
    if initial_controllers is None or config.value("process.roles") == ["controller"]:
        return
    node_id = config.node_id
    ids = [voter.partition("@")[0] for voter in initial_controllers.split(",")]
    if ids != [str(node_id)]:
        raise InvalidConfigError(f"--initial-controllers must name node {node_id} alone: the quorum is this node")


def _feature(text: str) -> tuple[str, int]:
    name, equals, level = text.partition("=")
    if not equals or not level.strip().isdigit():
        raise InvalidConfigError(
            f"Can't parse feature=level string {text}: expected something like {METADATA_VERSION}=25"
        )
    check_feature(name.strip(), int(level))
    return name.strip(), int(level)


def _info(options: argparse.Namespace) -> int:
    from moldau.cli.storage.info import describe

    lines, has_problems = describe(_load(options.config))
    for line in lines:
        print(line)
    return 1 if has_problems else 0


def _version_mapping(options: argparse.Namespace) -> int:
    release = options.release_version
    level = level_of(release) if release else default_level()
    print(f"{METADATA_VERSION}={level} ({release or name_of(level)})")
    for name, feature_level in features_at(level).items():
        print(f"{name}={feature_level}")
    return 0


def _feature_dependencies(options: argparse.Namespace) -> int:
    for name, level in [_feature(text) for text in options.feature]:
        print("\n".join(dependencies_of(name, level)))
    return 0


def _random_uuid(options: argparse.Namespace) -> int:
    print(render_uuid(random_uuid()))
    return 0
