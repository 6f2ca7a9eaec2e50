from __future__ import annotations

import pytest

from moldau.registry.errors import InvalidSubjectError
from moldau.registry.subjects import check_subject, context_name, in_context, is_below, parse_subject


@pytest.mark.parametrize(
    ("text", "context", "name", "spelled"),
    [
        ("orders-value", ".", "orders-value", "orders-value"),
        (":.lab:orders", ".lab", "orders", ":.lab:orders"),
        (":.:orders", ".", "orders", "orders"),
        (":.lab:", ".lab", "", ":.lab:"),
        (":.lab", ".lab", "", ":.lab:"),
        (":.lab:a:b", ".lab", "a:b", ":.lab:a:b"),
        (":orders", ".", ":orders", ":orders"),
        ("a:.b:c", ".", "a:.b:c", "a:.b:c"),
        ("", ".", "", ""),
    ],
)
def test_subjects_say_their_context(text: str, context: str, name: str, spelled: str) -> None:
    subject = parse_subject(text)
    assert (subject.context, subject.name, subject.text) == (context, name, spelled)


def test_a_plain_subject_is_taken_into_a_context_and_a_qualified_one_stays() -> None:
    assert in_context(".lab", "s") == ":.lab:s"
    assert in_context(".lab", ":.other:s") == ":.other:s"
    assert in_context(".lab", ":.:s") == "s"
    assert in_context(".", "s") == "s"


@pytest.mark.parametrize("text", [".lab", "lab", ":.lab:"])
def test_contexts_in_paths_have_several_spellings(text: str) -> None:
    assert context_name(text) == ".lab"


def test_scopes_hold_subjects() -> None:
    assert is_below(None, "s")
    assert is_below(":.lab:", ":.lab:s")
    assert not is_below(":.lab:", "s")
    assert is_below("s", "s")
    assert not is_below("s", "t")


@pytest.mark.parametrize(
    "subject", ["a\nb", "\x00", "a\x7f", "__GLOBAL", "__EMPTY", ":.lab:__GLOBAL", ":.__GLOBAL:s", ":*:s"]
)
def test_names_that_could_not_be_kept_are_refused(subject: str) -> None:
    with pytest.raises(InvalidSubjectError):
        check_subject(subject)


def test_a_name_may_be_empty_unless_told_otherwise() -> None:
    check_subject("")
    with pytest.raises(InvalidSubjectError):
        check_subject("", may_be_empty=False)
