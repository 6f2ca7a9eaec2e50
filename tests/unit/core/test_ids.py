"""Names of partitions and ids, and their text forms."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.core.ids import TopicPartition, parse_uuid, random_uuid, render_uuid


def test_a_directory_name_splits_at_its_last_dash() -> None:
    assert TopicPartition.parse("a-1-2") == TopicPartition("a-1", 2)
    assert str(TopicPartition("a-1", 2)) == "a-1-2"


@pytest.mark.parametrize("name", ["topic", "-1", "topic-", "topic-x", ""])
def test_other_directories_are_no_partitions(name: str) -> None:
    with pytest.raises(ValueError, match="not of the form"):
        TopicPartition.parse(name)


@given(st.uuids())
def test_ids_survive_their_text_form(value: uuid.UUID) -> None:
    text = render_uuid(value)
    assert len(text) == 22
    assert parse_uuid(text) == value


def test_an_id_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="22-character"):
        parse_uuid("too-short")


def test_random_ids_never_look_like_an_option() -> None:
    assert not any(render_uuid(random_uuid()).startswith("-") for _ in range(500))
