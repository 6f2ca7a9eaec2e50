"""The windows of an aggregation: checked, with their grace and retention. Start at `window_of`."""

from __future__ import annotations

from moldau.pipeline.ir.windows import AggregationWindow, SessionWindow, TimeWindow
from moldau.pipeline.ksql.catalogue.sources import KeyWindow, WindowKind
from moldau.pipeline.ksql.errors import KsqlError
from moldau.pipeline.ksql.syntax import statements as syntax

__all__ = ["retention_ms_of", "window_of"]

DAY_MS = 86_400_000


def window_of(window: syntax.Window, *, is_final: bool) -> tuple[AggregationWindow, KeyWindow]:
    """A window for the pipeline, and as it appears in keys; raises `KsqlError` for lengths that make no window."""
    match window:
        case syntax.TumblingWindow(size=size):
            _check_size(size)
            grace_ms = _grace_ms(window, size, is_final=is_final)
            made: AggregationWindow = TimeWindow(size_ms=size.ms, advance_ms=size.ms, grace_ms=grace_ms)
            found = made, KeyWindow(WindowKind.TUMBLING, size.ms)
        case syntax.HoppingWindow(size=size, advance=advance):
            _check_size(size)
            if not 0 < advance.ms <= size.ms:
                raise KsqlError(
                    "Advance interval should be more than zero and no more than window duration, but given advance "
                    f"interval is: {advance.ms} and given window size is: {size.ms}"
                )
            grace_ms = _grace_ms(window, size, is_final=is_final)
            made = TimeWindow(size_ms=size.ms, advance_ms=advance.ms, grace_ms=grace_ms)
            found = made, KeyWindow(WindowKind.HOPPING, size.ms)
        case syntax.SessionWindow(gap=size):
            if size.ms <= 0:
                raise KsqlError("Gap time (gapMs) cannot be zero or negative. Write for example SESSION (30 SECONDS)")
            grace_ms = _grace_ms(window, size, is_final=is_final)
            found = SessionWindow(gap_ms=size.ms, grace_ms=grace_ms), KeyWindow(WindowKind.SESSION)
    _check_retention(window, size)
    return found


def retention_ms_of(window: syntax.Window, *, is_final: bool) -> int:
    """How long windows are kept: as long as records may still change them, or longer if the user says so."""
    made, _ = window_of(window, is_final=is_final)
    assert isinstance(made, TimeWindow | SessionWindow)
    length_ms = made.size_ms if isinstance(made, TimeWindow) else made.gap_ms
    return max(0 if window.retention is None else window.retention.ms, length_ms + made.grace_ms)


def _grace_ms(window: syntax.Window, size: syntax.Duration, *, is_final: bool) -> int:
    if window.grace is not None:
        return window.grace.ms
    return 0 if is_final else max(DAY_MS - size.ms, 0)


def _check_size(size: syntax.Duration) -> None:
    if size.ms <= 0:
        raise KsqlError("Window size (sizeMs) must be larger than zero. Write for example SIZE 30 SECONDS")


def _check_retention(window: syntax.Window, size: syntax.Duration) -> None:
    """A retention that leaves out the default grace is made longer; one that contradicts what is written is refused."""
    grace_ms = 0 if window.grace is None else window.grace.ms
    if window.retention is not None and window.retention.ms < size.ms + grace_ms:
        raise KsqlError(
            "The retention period of the window store must be no smaller than its window size plus the grace period. "
            f"Got size=[{size.ms}], grace=[{grace_ms}], retention=[{window.retention.ms}]"
        )
