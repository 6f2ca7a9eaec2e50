"""The store of a foreign-key join's subscriptions: which left rows refer to which right key.

All subscriptions to one right key are read together when its row changes, and single ones otherwise; popular keys have
very many. So a right key's subscriptions are in buckets by a hash of the left key: one bucket at first, doubled when
they get too full. The first bucket stores how many there are. Start at `Subscriptions`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

from moldau.pipeline.cores.stores.backends import StateBackend
from moldau.pipeline.cores.stores.sized_pieces import join_pieces, pieces
from moldau.pipeline.cores.stores.store import Store, StoreChange
from moldau.pipeline.cores.stores.write_back import WriteBack
from moldau.pipeline.ir.foreign_key import Subscription, SubscriptionSerde

__all__ = ["Subscriptions"]

CROWDED = 512
"""How many subscriptions a bucket should hold on average, at most."""

BUCKET = struct.Struct(">I")
BUCKETS = struct.Struct(">I")

_SERDE = SubscriptionSerde()


class Bucket:
    """Subscriptions by left key; `buckets` is valid in the first bucket of a right key."""

    __slots__ = ("buckets", "entries")

    def __init__(self, buckets: int = 1) -> None:
        self.buckets = buckets
        self.entries: dict[bytes, Subscription] = {}


def encode_bucket(bucket: Bucket) -> bytes:
    """A bucket for the backend."""
    return BUCKETS.pack(bucket.buckets) + join_pieces(map(_SERDE.encode, bucket.entries.values()))


def decode_bucket(data: bytes) -> Bucket:
    """What `encode_bucket` wrote."""
    bucket = Bucket(*BUCKETS.unpack_from(data))
    for piece in pieces(data, BUCKETS.size):
        subscription = _SERDE.decode(piece)
        bucket.entries[subscription.primary_key] = subscription
    return bucket


class Subscriptions(Store):
    """Subscriptions by the bytes of right key and left key."""

    def __init__(self, name: str, backend: StateBackend) -> None:
        super().__init__(name)
        self._cache = WriteBack(backend, encode_bucket, decode_bucket)

    def put(self, foreign_key: bytes, subscription: Subscription) -> None:
        """Add or replace the subscription of a left row."""
        first = self._bucket(foreign_key, 0)
        number = self._number(subscription.primary_key, first.buckets)
        bucket = self._bucket(foreign_key, number)
        bucket.entries[subscription.primary_key] = subscription
        self._cache.put(self._name(foreign_key, number), bucket)
        if len(bucket.entries) > 2 * CROWDED:
            self._double_buckets(foreign_key, first.buckets)

    def delete(self, foreign_key: bytes, primary_key: bytes) -> None:
        """Delete the subscription of a left row, if there is one."""
        number = self._number(primary_key, self._bucket(foreign_key, 0).buckets)
        bucket = self._bucket(foreign_key, number)
        if bucket.entries.pop(primary_key, None) is not None:
            # The first of several buckets is kept, since it stores their number.
            is_needed = bucket.entries or (number == 0 and bucket.buckets > 1)
            self._cache.put(self._name(foreign_key, number), bucket if is_needed else None)

    def of(self, foreign_key: bytes) -> list[Subscription]:
        """All subscriptions to a right key, in byte order of their left keys."""
        return sorted(self._all(foreign_key), key=lambda subscription: subscription.primary_key)

    def flush(self) -> list[StoreChange]:
        """Write what changed; returns nothing, since the store cannot be queried."""
        self._cache.flush()
        return []

    def _all(self, foreign_key: bytes) -> Iterator[Subscription]:
        for number in range(self._bucket(foreign_key, 0).buckets):
            yield from self._bucket(foreign_key, number).entries.values()

    def _double_buckets(self, foreign_key: bytes, buckets: int) -> None:
        """Double the buckets of a right key."""
        everything = list(self._all(foreign_key))
        spread = [Bucket(2 * buckets) for _ in range(2 * buckets)]
        for subscription in everything:
            number = self._number(subscription.primary_key, len(spread))
            spread[number].entries[subscription.primary_key] = subscription
        for number, bucket in enumerate(spread):
            self._cache.put(self._name(foreign_key, number), bucket)

    def _bucket(self, foreign_key: bytes, number: int) -> Bucket:
        bucket: Bucket | None = self._cache.get(self._name(foreign_key, number))
        return Bucket() if bucket is None else bucket

    @staticmethod
    def _name(foreign_key: bytes, number: int) -> bytes:
        return BUCKET.pack(number) + foreign_key

    @staticmethod
    def _number(primary_key: bytes, buckets: int) -> int:
        return crc32(primary_key) % buckets
