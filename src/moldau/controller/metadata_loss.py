"""Checks that the metadata log is complete: with an empty or truncated log every partition would become a stray.

Pure. The manifests of the log directories record up to which offset the log was on disk
(`log.directories.manifest`); partition folders show that a cluster existed. Start at `metadata_loss`.
"""

from __future__ import annotations

from collections.abc import Sequence

from moldau.controller.image import MetadataImage
from moldau.log.directories.manifest import MANIFEST, Manifest

__all__ = ["forgotten_cluster", "metadata_loss", "recorded_end"]

_FEW = 3


def recorded_end(manifests: Sequence[Manifest], metadata_epoch: int) -> int:
    """The offset below which the metadata log was on disk; 0 if not recorded, or if another broker has run since."""
    return max((one.metadata_end_offset for one in manifests if not one.is_outdated(metadata_epoch)), default=0)


def forgotten_cluster(image: MetadataImage, known_end: int, partitions: Sequence[str]) -> str | None:
    """Return the problem of a broker with partitions whose cluster has begun anew; `None` if there is none.

    Its metadata log ended at `known_end` when it last ran, 0 if it had none. A cluster that knows less than that, and
    no topic of `partitions`, is not the one they belong to.
    """
    has_gone_back = image.offset + 1 < known_end or not (known_end or image.topics)
    if not partitions or not has_gone_back or any(one.rpartition("-")[0] in image.topics for one in partitions):
        return None
    return (
        f"the controllers know none of the {len(partitions)} partitions in the log directories "
        f"({_examples(partitions)}), and their metadata is shorter than what this broker has seen: the cluster was "
        "begun anew. Nothing is changed here. Restore the controllers' folders, or start a controller with an empty "
        "folder and this broker first, which hands over its metadata; to join the new cluster, move the folders of "
        "the partitions away"
    )


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
        examples = _examples(partitions)
        return (
            f"the metadata log {directory} is missing or empty, but the log directories hold {len(partitions)} "
            f"partitions ({examples}). Restore this folder from a backup; or, to begin a new cluster here, move the "
            "folders of the partitions away and start again"
        )
    return None


def _examples(partitions: Sequence[str]) -> str:
    return ", ".join(sorted(partitions)[:_FEW]) + (", ..." if len(partitions) > _FEW else "")
