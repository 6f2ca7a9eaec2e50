"""A connector's transforms with their predicates, as its configuration lists them, applied batch by batch.

`transforms=a,b` with `transforms.a.type` and so on; `transforms.a.predicate=p` with `predicates.p.type` restricts a
transform to records that satisfy the predicate, or do not, with `transforms.a.negate=true`. Start at
`TransformationChain`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moldau.connect.api.errors import ConfigError
from moldau.connect.api.plugin_kinds import Predicate, Transformation
from moldau.connect.api.plugins import PluginNotFoundError, Plugins
from moldau.connect.api.records import ConnectRecord, SinkRecord
from moldau.core.errors import MoldauError

__all__ = ["Failure", "TransformationChain", "prefixed"]

OWN_KEYS: Final = ("type", "predicate", "negate")


@dataclass(slots=True)
class Failure:
    """A transform that failed for a record."""

    record: ConnectRecord
    """As it was before the chain."""

    transform: str
    """The alias of the transform."""

    transform_class: str
    error: Exception


@dataclass(slots=True)
class _Stage:
    alias: str
    transform: Transformation
    predicate: Predicate | None
    negate: bool

    def run(self, records: Sequence[ConnectRecord]) -> list[ConnectRecord | None]:
        if self.predicate is None:
            return self.transform.apply_batch(records)
        test, negate = self.predicate.test, self.negate
        chosen = [test(record) != negate for record in records]
        changed = iter(self.transform.apply_batch([one for one, is_in in zip(records, chosen, strict=True) if is_in]))
        return [next(changed) if is_in else record for record, is_in in zip(records, chosen, strict=True)]


class TransformationChain:
    """Transforms in order."""

    def __init__(self, stages: Sequence[_Stage] = ()) -> None:
        self._stages = list(stages)

    @classmethod
    def of(cls, settings: Mapping[str, str], plugins: Plugins) -> TransformationChain:
        """The chain that a connector's configuration describes; raises `ConfigError` with everything wrong in it."""
        problems: list[str] = []
        predicates = _predicates(settings, plugins, problems)
        stages = []
        for alias in _listed(settings, "transforms", problems):
            own = prefixed(settings, f"transforms.{alias}.")
            made = _made(f"transforms.{alias}", own, "transformation", plugins, problems)
            name = own.get("predicate")
            if name is not None and name not in predicates:
                problems.append(
                    f"Invalid value {name} for configuration transforms.{alias}.predicate: predicates does not list it"
                )
            negate = own.get("negate", "false").strip().lower()
            if negate not in ("true", "false"):
                problems.append(
                    f"Invalid value {negate} for configuration transforms.{alias}.negate: expected true or false"
                )
            if made is not None:
                stages.append(_Stage(alias, made, predicates.get(name) if name else None, negate == "true"))
        if problems:
            raise ConfigError(problems)
        return cls(stages)

    def __bool__(self) -> bool:
        return bool(self._stages)

    def apply(self, records: Sequence[ConnectRecord]) -> list[ConnectRecord | Failure | None]:
        """For each record what became of it: a record, None if it was dropped, or why it failed.

        A batch goes through at once; if anything in it fails, its records go one by one, so that one alone fails.
        """
        if not self._stages:
            return list(records)
        try:
            return list(self._batch(records))
        except Exception:  # Whatever it was, it is found again below, with its record.
            return [self._one(record) for record in records]

    def _batch(self, records: Sequence[ConnectRecord]) -> list[ConnectRecord | None]:
        results: list[ConnectRecord | None] = list(records)
        alive = list(range(len(results)))
        for stage in self._stages:
            changed = stage.run([results[index] for index in alive])  # type: ignore[misc]
            for index, record in zip(alive, changed, strict=True):
                results[index] = record
            alive = [index for index in alive if results[index] is not None]
        return [_kept_origin(before, after) for before, after in zip(records, results, strict=True)]

    def _one(self, record: ConnectRecord) -> ConnectRecord | Failure | None:
        current: ConnectRecord | None = record
        for stage in self._stages:
            if current is None:
                return None
            try:
                (current,) = stage.run([current])
            except Exception as error:  # A transform may raise anything; tolerance decides what it means.
                return Failure(record, stage.alias, type(stage.transform).__name__, error)
        return _kept_origin(record, current)

    def close(self) -> None:
        """Close all transforms and predicates."""
        for stage in self._stages:
            stage.transform.close()
            if stage.predicate is not None:
                stage.predicate.close()


def _kept_origin(before: ConnectRecord, after: ConnectRecord | None) -> ConnectRecord | None:
    """A sink's record keeps in mind where it was read, since its offset counts there."""
    if after is None or not isinstance(before, SinkRecord) or not isinstance(after, SinkRecord):
        return after
    if after.original_topic is None and (after.topic != before.topic or after.partition != before.partition):
        after.original_topic, after.original_partition = before.topic, before.partition
    return after


def prefixed(settings: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The settings below a prefix, without it."""
    return {key[len(prefix) :]: value for key, value in settings.items() if key.startswith(prefix)}


def _listed(settings: Mapping[str, str], key: str, problems: list[str]) -> list[str]:
    names = [name.strip() for name in (settings.get(key) or "").split(",") if name.strip()]
    if len(set(names)) != len(names):
        problems.append(f"Invalid value {settings[key]} for configuration {key}: Duplicate alias provided.")
    return list(dict.fromkeys(names))


def _predicates(settings: Mapping[str, str], plugins: Plugins, problems: list[str]) -> dict[str, Predicate]:
    found = {}
    for alias in _listed(settings, "predicates", problems):
        made = _made(f"predicates.{alias}", prefixed(settings, f"predicates.{alias}."), "predicate", plugins, problems)
        if made is not None:
            found[alias] = made
    return found


def _made(prefix: str, own: Mapping[str, str], kind: str, plugins: Plugins, problems: list[str]) -> Any:
    if not own.get("type"):
        problems.append(f'Missing required configuration "{prefix}.type" which has no default value.')
        return None
    try:
        made = plugins.create(own["type"], kind)
        made.configure({key: value for key, value in own.items() if key not in OWN_KEYS})
    except PluginNotFoundError as error:
        problems.append(f"Invalid value {own['type']} for configuration {prefix}.type: {error}")
    except ConfigError as error:
        problems.extend(f"{prefix}: {line}" for line in error.problems)
    except MoldauError as error:
        problems.append(f"{prefix}: {error}")
    else:
        return made
    return None
