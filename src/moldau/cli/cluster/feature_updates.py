"""kafka-features upgrade, downgrade and disable. Start at `add_actions` and `change_levels`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from moldau.cli.tool import ToolError, say
from moldau.client.wire import WireClient
from moldau.core.errors import ErrorCode, MoldauError
from moldau.core.features import KRAFT_VERSION, METADATA_VERSION, UpgradeType
from moldau.protocol.api import ApiKey
from moldau.protocol.messages import Message
from moldau.server.metadata_versions import features_at, level_of

__all__ = ["ACTIONS", "add_actions", "change_levels", "name_and_level", "wanted_levels"]

ACTIONS = {
    "upgrade": "raise the levels of features",
    "downgrade": "lower the levels of features",
    "disable": "turn features off, which is a downgrade to level 0",
}
TIMEOUT_MS = 60_000
SHORTS = range(-(2**15), 2**15)


def add_actions(actions: Any) -> None:
    for name, text in ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"Change a cluster: {text}.")
        if name == "disable":
            action.add_argument("--feature", action="append", default=[], metavar="FEATURE", help="the feature")
        else:
            level = f"{name} this feature, for example group.version=1"
            action.add_argument("--feature", action="append", default=[], metavar="FEATURE=LEVEL", help=level)
            action.add_argument("--metadata", metavar="RELEASE", help="deprecated: metadata.version of this release")
            release = "all features to the levels of a release, such as 4.0; see version-mapping"
            action.add_argument("--release-version", metavar="RELEASE", help=release)
        if name != "upgrade":
            unsafe = "also where metadata may be lost (which moldau refuses, as Kafka does)"
            action.add_argument("--unsafe", action="store_true", help=unsafe)
        action.add_argument("--dry-run", action="store_true", help="check only, change nothing")


def wanted_levels(options: argparse.Namespace) -> dict[str, int]:
    """The levels that the words ask for, by feature; raises `ToolError`."""
    action = options.action
    levels: dict[str, int] = {}
    release = getattr(options, "release_version", None)
    metadata = getattr(options, "metadata", None)
    if release is not None:
        if metadata is not None or options.feature:
            raise ToolError("Can not specify `release-version` with other feature flags.")
        return _levels_of_release(release, action)
    if metadata is not None:
        say(" `metadata` flag is deprecated and may be removed in a future release.")
        levels[METADATA_VERSION] = _metadata_level(metadata)
    for text in options.feature:
        name, level = (text, 0) if action == "disable" else name_and_level(text)
        if name in levels:
            raise ToolError(f"Feature {name} was specified more than once.")
        if action == "upgrade" and level < 1:
            raise ToolError(
                "The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided "
                f"maxVersionLevel:{level} is < 1."
            )
        levels[name] = level
    if not levels:
        raise ToolError(f"You must specify at least one feature to {action}")
    return levels


def change_levels(client: WireClient, options: argparse.Namespace, levels: Mapping[str, int]) -> None:
    """Send the request and say what became of each feature; raises `ToolError` if it was refused."""
    if ApiKey.UPDATE_FEATURES not in client.api_versions():
        raise ToolError("this broker cannot change feature levels; it has no UpdateFeatures API")
    answer = client.send(ApiKey.UPDATE_FEATURES, _request(options, levels))
    if answer.error_code == ErrorCode.NOT_CONTROLLER:
        raise ToolError("the controller has just changed; try again")
    action = options.action
    for name, level in sorted(levels.items()):
        to = "" if action == "disable" else f" to {level}"
        if answer.error_code:
            why = answer.error_message or ErrorCode(answer.error_code).name
            say(f"{'Can not' if options.dry_run else 'Could not'} {action} {name}{to}. {why}")
        else:
            say(f"{name} {'can be' if options.dry_run else 'was'} {action}d{to}.")
    if answer.error_code:
        raise ToolError(f"{len(levels)} out of {len(levels)} operation(s) failed.")


def _request(options: argparse.Namespace, levels: Mapping[str, int]) -> Message:
    kind = UpgradeType.UPGRADE
    if options.action != "upgrade":
        kind = UpgradeType.UNSAFE_DOWNGRADE if options.unsafe else UpgradeType.SAFE_DOWNGRADE
    updates = [
        Message(
            feature=name,
            max_version_level=level,
            upgrade_type=kind,
            allow_downgrade=kind is not UpgradeType.UPGRADE,
        )
        for name, level in levels.items()
    ]
    return Message(timeout_ms=TIMEOUT_MS, feature_updates=updates, validate_only=options.dry_run)


def _levels_of_release(release: str, action: str) -> dict[str, int]:
    """A feature that the release does not have is not upgraded; the quorum's own feature follows no release."""
    level = _metadata_level(release)
    levels = {METADATA_VERSION: level, **features_at(level)}
    levels.pop(KRAFT_VERSION, None)
    return {name: each for name, each in levels.items() if each > 0 or action != "upgrade"}


def _metadata_level(release: str) -> int:
    try:
        return level_of(release)
    except MoldauError as error:
        raise ToolError(str(error)) from None


def name_and_level(text: str) -> tuple[str, int]:
    """The parts of `FEATURE=LEVEL`; raises `ToolError`."""
    name, equals, level = text.partition("=")
    if not equals:
        raise ToolError(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        number = int(level)
    except ValueError:
        number = SHORTS.stop
    if number not in SHORTS:
        raise ToolError(f"Can't parse feature=level string {text}: unable to parse {level.strip()} as a short.")
    return name.strip(), number
