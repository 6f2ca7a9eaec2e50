"""What is done while no file descriptor is free."""

from __future__ import annotations

import errno
import os

import pytest

from moldau.server.process.late_imports import SpareDescriptor


def out_of_descriptors() -> OSError:
    return OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_the_spare_descriptor_is_lent_and_held_again() -> None:
    spare = SpareDescriptor()
    spare.hold()
    outcomes = [out_of_descriptors(), None]
    for _ in range(2):
        calls = list(outcomes)

        def call(calls: list[OSError | None] = calls) -> str:
            failure = calls.pop(0)
            if failure is not None:
                raise failure
            return "loaded"

        assert spare.lend(call) == "loaded"
        assert calls == []


def test_other_errors_are_no_reason_to_try_again() -> None:
    spare = SpareDescriptor()
    spare.hold()
    calls = []

    def call() -> None:
        calls.append(1)
        raise FileNotFoundError(errno.ENOENT, "no such file")

    with pytest.raises(FileNotFoundError):
        spare.lend(call)
    assert len(calls) == 1


def test_without_a_spare_descriptor_the_error_is_the_callers() -> None:
    def call() -> None:
        raise out_of_descriptors()

    with pytest.raises(OSError, match="Too many open files"):
        SpareDescriptor().lend(call)
