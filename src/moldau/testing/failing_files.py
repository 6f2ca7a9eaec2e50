"""A disk on which one system call fails: the one with a given number.

Run a scenario once to count its calls, then once for every call and every error that call can return:

    files = FailingFiles()
    scenario(files)
    for fault in files.possible_faults():
        scenario(FailingFiles(fault))

All other calls succeed. Syncs are counted but not executed: a killed process loses nothing it has written, so they
would only cost time. Start at `FailingFiles.possible_faults`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from moldau.log.files import Files

__all__ = ["FailingFiles", "Fault", "KilledError"]

SHORT_WRITE: Final = -1
"""No error at all: half of the bytes are written, as the system call may."""

SHORT_THEN_FULL: Final = -2
"""Half of the bytes are written, and the write of the rest finds the disk full."""

DIES: Final = -3
"""The process ends in this call, a write with half of its bytes written."""

_CHANGING: Final = (errno.ENOSPC, errno.EIO)
_ERRORS: Final[dict[str, tuple[int, ...]]] = {
    "open": (errno.EMFILE, errno.EIO),
    "create": (errno.EMFILE, errno.ENOSPC, errno.EIO),
    "listdir": (errno.EMFILE, errno.EIO),
    "scandir": (errno.EMFILE, errno.EIO),
    "write": (SHORT_WRITE, SHORT_THEN_FULL, *_CHANGING),
    "replace": _CHANGING,
    "makedirs": _CHANGING,
    "fdatasync": _CHANGING,
    "fsync": _CHANGING,
}
"""What each call may fail with; all others only with EIO. `create` is an `open` that may make the file."""

_NAMES: Final = {SHORT_WRITE: "short", SHORT_THEN_FULL: "short-ENOSPC", DIES: "dies"}


class KilledError(BaseException):
    """Stands for a kill: no code may catch it."""


class Fault(NamedTuple):
    number: int
    """Which call fails; the first is 1."""
    error: int
    call: str

    def __str__(self) -> str:
        return f"{self.number}-{self.call}-{_NAMES.get(self.error) or errno.errorcode[self.error]}"


class FailingFiles(Files):
    def __init__(self, fault: Fault | None = None, *, is_counting: bool = True) -> None:
        self.fault = fault
        self.calls: list[str] = []
        """The calls made so far, each with the file it was made for."""
        self.has_failed = False
        self._is_full = False
        self._is_counting = is_counting
        self.system = _System(self)  # type: ignore[assignment]

    def possible_faults(self) -> Iterator[Fault]:
        """Every failure that one of the calls made so far could have had."""
        for number, made in enumerate(self.calls, 1):
            call = made.split(" ")[0]
            for error in _ERRORS.get(call, (errno.EIO,)):
                yield Fault(number, error, call)

    def possible_deaths(self) -> Iterator[Fault]:
        """Every call made so far as the one in which the process ends."""
        for number, made in enumerate(self.calls, 1):
            yield Fault(number, DIES, made.split(" ")[0])

    def start(self) -> None:
        """Start counting and failing calls: the scenario begins."""
        self._is_counting = True

    def stop(self) -> None:
        """Stop counting and failing calls: the scenario is over, its results are checked next."""
        self._is_counting = False

    def write(self, fd: int, data: Any) -> int:
        error = self.before("write", fd)
        if error not in _NAMES:
            fail_with(error, "write")
            return os.write(fd, data)
        written = os.write(fd, memoryview(data)[: max(1, len(data) // 2)])
        if error == DIES:
            raise KilledError
        self._is_full = error == SHORT_THEN_FULL
        return written

    def pread(self, fd: int, length: int, position: int) -> bytes:
        fail_with(self.before("pread", fd), "pread")
        return os.pread(fd, length, position)

    def before(self, call: str, target: Any) -> int:
        """Count a call; returns the error it has to fail with, or 0."""
        if not self._is_counting:
            return 0
        if call == "write" and self._is_full:
            self._is_full = False
            return errno.ENOSPC
        name = os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else str(target)
        self.calls.append(f"{call} {name}")
        if self.fault is None or len(self.calls) != self.fault.number:
            return 0
        if self.fault.call != call:
            raise AssertionError(f"the scenario took another way: {call} {name} where {self.fault.call} was counted")
        self.has_failed = True
        return self.fault.error


def fail_with(error: int, target: str) -> None:
    if error == DIES:
        raise KilledError
    if error:
        raise OSError(error, os.strerror(error), target)


class _System:
    """The part of `os` that `Files` uses, with each call counted."""

    def __init__(self, files: FailingFiles) -> None:
        self._files = files

    def __getattr__(self, call: str) -> Any:
        real = getattr(os, call)

        def counted(target: Any, *arguments: Any, **options: Any) -> Any:
            is_creation = call == "open" and arguments[0] & os.O_CREAT
            error = self._files.before("create" if is_creation else call, target)
            if call == "close":
                real(target)  # Linux closes the file even if close() returns an error.
            fail_with(error, str(target))
            if call not in {"close", "fsync", "fdatasync"}:
                return real(target, *arguments, **options)
            return None

        return counted
