"""A new version of a known text: only metadata and rules change. Start at `tagged`."""

from __future__ import annotations

from moldau.registry.entities import SchemaVersion
from moldau.registry.metadata import merged_rule_sets, rule_set_without, with_version
from moldau.registry.requests import RegisterRequest, TagRequest

__all__ = ["tagged"]


def tagged(old: SchemaVersion, previous: SchemaVersion, request: TagRequest) -> RegisterRequest:
    """What is to be registered. Rules are given as a whole, or as changes to those of the version before."""
    rule_set = request.rule_set
    if request.rules_to_merge is not None or request.rules_to_remove:
        rule_set = merged_rule_sets(previous.rule_set, request.rules_to_merge)
        rule_set = rule_set_without(rule_set, request.rules_to_remove)
    metadata = request.metadata if request.metadata is not None else old.metadata
    return RegisterRequest(
        schema=old.schema,
        schema_type=old.schema_type,
        references=old.references,
        metadata=with_version(metadata, request.new_version),
        rule_set=rule_set,
        version=request.new_version,
    )
