"""CREATE OR REPLACE: which changes of a source its readers can live with. Start at `check_replacement`."""

from __future__ import annotations

from moldau.pipeline.ksql.catalogue.sources import Source
from moldau.pipeline.ksql.errors import KsqlError

__all__ = ["check_replacement"]


def check_replacement(old: Source, new: Source) -> None:
    """Raise where one source cannot take the place of another."""
    if old.kind is not new.kind:
        raise _refused(new, f"the kind changes from {old.kind.value} to {new.kind.value}")
    problems = []
    if old.schema.key != new.schema.key:
        changed = [column for column in old.schema.key if column not in new.schema.key]
        problems.append(
            f"The following key columns are changed, missing or reordered: [{', '.join(map(str, changed))}]"
        )
    kept = new.schema.value[: len(old.schema.value)]
    if kept != old.schema.value:
        changed = [column for column in old.schema.value if column not in kept]
        problems.append(
            "The following columns are changed, missing or reordered: "
            f"[{', '.join(map(str, changed or old.schema.value))}]"
        )
    for what, before, after in (
        ("KAFKA_TOPIC", old.topic, new.topic),
        ("KEY_FORMAT", old.key_format.format.name, new.key_format.format.name),
        ("VALUE_FORMAT", old.value_format.format.name, new.value_format.format.name),
        ("WINDOW", _window_text(old), _window_text(new)),
    ):
        if before != after:
            problems.append(f"DataSource '{new.name}' has {what} = {before} which is not upgradeable to {after}")
    if problems:
        raise _refused(new, "; ".join(problems))


def _window_text(source: Source) -> str:
    window = source.window
    if window is None:
        return "none"
    return window.kind.name if window.size_ms is None else f"{window.kind.name} of {window.size_ms} ms"


def _refused(source: Source, reason: str) -> KsqlError:
    word = source.kind.value.lower()
    return KsqlError(f"Cannot upgrade data source: Cannot add {word} '{source.name}': {reason}")
