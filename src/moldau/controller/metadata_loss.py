"""Checks that the metadata log is complete: with an empty or truncated log every partition would become a stray.

Pure. The manifests of the log directories record up to which offset the log was on disk
(`log.directories.manifest`); partition folders show that a cluster existed. Start at `metadata_loss`.
"""

from __future__ import annotations

from collections.abc import Sequence

from moldau.log.directories.manifest import MANIFEST, Manifest

__all__ = ["metadata_loss", "recorded_end"]

_FEW = 3


def recorded_end(manifests: Sequence[Manifest], metadata_epoch: int) -> int:
    """The offset below which the metadata log was on disk; 0 if not recorded, or if another broker has run since."""
    return max((one.metadata_end_offset for one in manifests if not one.is_outdated(metadata_epoch)), default=0)


def metadata_loss(directory: str, *, end_offset: int, recorded_end: int, partitions: Sequence[str]) -> str | None:
    """Return the problem with a metadata log that ends at `end_offset` and how to fix it; `None` if there is none.

    `partitions` are the folders found in the log directories.
    """
    if end_offset < recorded_end:
        return (
            f"the metadata log {directory} ends at offset {end_offset}, but everything below {recorded_end} was on "
            f"disk. Restore this folder from a backup; or, to go on with what is left of it, remove the file "
            f"{MANIFEST} from every log directory and start again: partitions of forgotten topics are then moved aside"
        )
    if not end_offset and partitions:
        examples = ", ".join(sorted(partitions)[:_FEW]) + (", ..." if len(partitions) > _FEW else "")
        return (
            f"the metadata log {directory} is missing or empty, but the log directories hold {len(partitions)} "
            f"partitions ({examples}). Restore this folder from a backup; or, to begin a new cluster here, move the "
            "folders of the partitions away and start again"
        )
    return None
