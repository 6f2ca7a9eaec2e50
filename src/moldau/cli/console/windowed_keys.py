"""Keys of windowed results as text, `[key@start/end]`: Kafka Streams' deserializers of windows, by their settings.

Start at `windowed_reader`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from moldau.cli.tool import ToolError
from moldau.core.errors import MoldauError

if TYPE_CHECKING:
    from moldau.pipeline.ir.serdes import Serde
    from moldau.pipeline.ir.windows import Windowed

__all__ = ["WINDOWED", "windowed_reader"]

Reader = Callable[[bytes], bytes]

WINDOWED = ("timewindowed", "sessionwindowed")
SIZE = "window.size.ms"
INNER = ("windowed.inner.class.serde", "windowed.inner.deserializer.class")


def windowed_reader(
    name: str, settings: Mapping[str, str], named: Callable[[str | None], Reader | None]
) -> Reader | None:
    """The reader for TimeWindowed or SessionWindowed keys, else None; `named` finds the one for what is inside."""
    if name not in WINDOWED:
        return None
    # Of all consoles only those that show windows wait for these modules.
    from moldau.pipeline.ir.serdes import BytesSerde
    from moldau.pipeline.ir.windowed_serdes import SessionWindowedSerde, TimeWindowedSerde

    given = next((settings[key] for key in INNER if settings.get(key)), "String")
    inner = named(re.split(r"[.$]", given)[-1].removesuffix("Serde"))
    if name == "sessionwindowed":
        return _reader(inner, SessionWindowedSerde(BytesSerde()))
    return _reader(inner, TimeWindowedSerde(BytesSerde(), _size_ms(settings)))


def _size_ms(settings: Mapping[str, str]) -> int:
    given = settings.get(SIZE, "")
    if not given.isdigit():
        raise ToolError(
            f"TimeWindowedDeserializer needs the size of the windows in ms, and got {given or 'none'}: "
            f"--property key.deserializer.{SIZE}=60000"
        )
    return int(given)


def _reader(inner: Reader | None, serde: Serde[Windowed[bytes]]) -> Reader:
    def deserialize(content: bytes) -> bytes:
        try:
            key, window = serde.deserialize("", content)
        except MoldauError as error:
            raise ValueError(str(error)) from None
        return b"[%b@%d/%d]" % (key if inner is None else inner(key), window.start, window.end)

    return deserialize
