"""Test topics: input topics to pipe records into, and output topics to read results from.

Made by `test_driver.TopologyTestDriver`. Start at `TestInputTopic.pipe_input`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from moldau.core.errors import MoldauError
from moldau.pipeline.cores.records import Headers
from moldau.pipeline.dsl.options.given import Duration, milliseconds
from moldau.pipeline.dsl.options.hints import Hinting
from moldau.serdes.serde import Part, Serde, SerdeError, bound_deserializer, bound_serializer

if TYPE_CHECKING:
    from moldau.streams.test_driver import TopologyTestDriver

__all__ = ["EmptyTopicError", "NoTimestampError", "TestInputTopic", "TestOutputTopic", "TestRecord"]


class NoTimestampError(MoldauError):
    """A record was piped in with an invalid timestamp."""


class EmptyTopicError(MoldauError):
    """A result was read from a topic without unread records."""


@dataclass(frozen=True, slots=True)
class TestRecord:
    """A record for tests: piped into an input topic, or read from an output topic and compared."""

    __test__: ClassVar[bool] = False

    key: Any
    value: Any
    timestamp_ms: int | None = None
    headers: Headers = ()


class TestInputTopic(Hinting):
    """A topic to pipe records into.

    Records without a timestamp get the topic's time, which then advances by `auto_advance_ms`.
    """

    __test__ = False

    def __init__(
        self,
        driver: TopologyTestDriver,
        name: str,
        *,
        serdes: tuple[Serde, Serde],
        start_timestamp_ms: int,
        auto_advance_ms: int,
    ) -> None:
        self.name = name
        self._driver = driver
        self._key_serde, self._value_serde = serdes
        self._now_ms = start_timestamp_ms
        self._auto_advance_ms = auto_advance_ms

    def pipe_input(
        self,
        key: Any,
        value: Any,
        timestamp_ms: int | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
    ) -> None:
        """Process one record; `timestamp_ms` is its event time, in whole ms since 1970.

        Without a timestamp it gets the topic's time, which then advances by `auto_advance_ms`.
        """
        headers = tuple(headers)
        if timestamp_ms is None:
            timestamp_ms = self._now_ms
            self._now_ms += self._auto_advance_ms
        if not isinstance(timestamp_ms, int):
            raise NoTimestampError(
                f"a timestamp is whole milliseconds since 1970, such as int(time.time() * 1000), not {timestamp_ms!r}"
            )
        self._driver.pipe(
            self.name,
            _serialize(self._key_serde, self.name, "key", key, headers),
            _serialize(self._value_serde, self.name, "value", value, headers),
            timestamp_ms,
            headers=headers,
            partition=partition,
        )

    def pipe_value(self, value: Any, timestamp_ms: int | None = None) -> None:
        """Process a record without a key."""
        self.pipe_input(None, value, timestamp_ms)

    def pipe_record(self, record: TestRecord) -> None:
        """Process a record given as a `TestRecord`."""
        self.pipe_input(record.key, record.value, record.timestamp_ms, headers=record.headers)

    def pipe_record_list(self, records: Iterable[TestRecord]) -> None:
        """Process several records in order."""
        for record in records:
            self.pipe_record(record)

    def pipe_key_value_list(
        self, pairs: Iterable[tuple[Any, Any]], start_timestamp_ms: int | None = None, advance_ms: int = 0
    ) -> None:
        """Process (key, value) pairs; with a start time, each timestamp is `advance_ms` after the previous one."""
        for index, (key, value) in enumerate(pairs):
            self.pipe_input(key, value, None if start_timestamp_ms is None else start_timestamp_ms + index * advance_ms)

    def pipe_value_list(
        self, values: Iterable[Any], start_timestamp_ms: int | None = None, advance_ms: int = 0
    ) -> None:
        """Process values without keys; timestamps as in `pipe_key_value_list`."""
        self.pipe_key_value_list(((None, value) for value in values), start_timestamp_ms, advance_ms)

    def advance_time(self, advance: Duration) -> None:
        """Advance the topic's time, which records without a timestamp get, by a timedelta or milliseconds."""
        self._now_ms += milliseconds(advance, "the advance of a topic's time")


class TestOutputTopic(Hinting):
    """A topic to read results from; each record is returned once, in order."""

    __test__ = False

    def __init__(self, driver: TopologyTestDriver, name: str, serdes: tuple[Serde, Serde]) -> None:
        self.name = name
        self._driver = driver
        self._key_serde, self._value_serde = serdes

    def read_record(self) -> TestRecord:
        """The next record with timestamp and headers; raises `EmptyTopicError` if there is none."""
        queue = self._driver.unread_records(self.name)
        if not queue:
            raise EmptyTopicError(self._driver.why_empty(self.name))
        output = queue.popleft()
        return TestRecord(
            _deserialize(self._key_serde, self.name, "key", output.key, output.headers),
            _deserialize(self._value_serde, self.name, "value", output.value, output.headers),
            output.timestamp,
            output.headers,
        )

    def read_key_value(self) -> tuple[Any, Any]:
        """Key and value of the next record."""
        record = self.read_record()
        return record.key, record.value

    def read_value(self) -> Any:
        """The value of the next record."""
        return self.read_record().value

    def read_records_to_list(self) -> list[TestRecord]:
        """All unread records."""
        return [self.read_record() for _ in range(self.get_queue_size())]

    def read_key_values_to_list(self) -> list[tuple[Any, Any]]:
        """Keys and values of all unread records."""
        return [(record.key, record.value) for record in self.read_records_to_list()]

    def read_values_to_list(self) -> list[Any]:
        """Values of all unread records."""
        return [record.value for record in self.read_records_to_list()]

    def read_key_values_to_map(self) -> dict[Any, Any]:
        """The last value of each key among the unread records."""
        return dict(self.read_key_values_to_list())

    def get_queue_size(self) -> int:
        """The number of unread records."""
        return len(self._driver.unread_records(self.name))

    def is_empty(self) -> bool:
        """Whether there are no unread records."""
        return not self.get_queue_size()


def _serialize(serde: Serde, topic: str, part: Part, value: Any, headers: Headers) -> bytes | None:
    try:
        return None if value is None else bound_serializer(serde)(topic, value, headers)
    except SerdeError as error:
        raise type(error)(f"Topic {topic}: the {part} cannot be serialized: {error}") from error


def _deserialize(serde: Serde, topic: str, part: Part, data: bytes | None, headers: Headers) -> Any:
    try:
        return None if data is None else bound_deserializer(serde)(topic, data, headers)
    except SerdeError as error:
        raise type(error)(f"Topic {topic}: the {part} cannot be deserialized: {error}") from error
