"""The same schema has the same guid in every registry."""

from __future__ import annotations

import hashlib
from uuid import UUID

from moldau.schemas.identity import SchemaReference, digest, guid


def test_the_digest_is_over_the_text() -> None:
    assert digest('"string"') == hashlib.md5(b'"string"').digest()
    assert guid(digest('"string"')) == str(UUID(bytes=hashlib.md5(b'"string"').digest()))


def test_references_count_with_name_subject_and_version() -> None:
    references = [SchemaReference("a.B", "a-value", 3)]
    assert digest("{}", references) == hashlib.md5(b"{}" + b"a.B" + b"a-value" + b"\x00\x00\x00\x03").digest()
    assert digest("{}", [SchemaReference("a.B", "a-value", -1)]) != digest("{}", references)


def test_metadata_counts_in_a_fixed_order_and_differs_from_none() -> None:
    metadata = {"tags": {"b": ["y", "x", "x"], "a": []}, "properties": {"d": "1", "c": "2"}, "sensitive": ["s"]}
    assert digest("{}", metadata=metadata) == hashlib.md5(b"{}\x01" + b"a" + b"bxy" + b"c2d1" + b"s").digest()
    assert digest("{}", metadata={}) == hashlib.md5(b"{}\x01").digest()


def test_rules_count_one_after_another() -> None:
    rule = {"name": "n", "kind": "CONDITION", "type": "CEL", "tags": ["t"], "params": {"k": "v"}, "expr": "e"}
    rules = {"domainRules": [{**rule, "disabled": True}], "migrationRules": [{"name": "m", "type": "J"}]}
    assert (
        digest("{}", rule_set=rules)
        == hashlib.md5(b"{}\x01" + b"mTRANSFORMWRITEREADJ" + b"nCONDITIONWRITEREADCELtkve\x01").digest()
    )


def test_references_can_be_ordered() -> None:
    first, second = SchemaReference("a", "s", 2), SchemaReference("b", "a", 1)
    assert sorted([second, first]) == [first, second]
