"""`quorum-state`: the last leader and epoch known to this node, saved so that an epoch is never used twice."""

from __future__ import annotations

import json
import os
import uuid
from typing import NamedTuple

from moldau.core.errors import StartupError
from moldau.core.ids import parse_uuid, render_uuid
from moldau.log.files import Files

__all__ = ["NOBODY", "QuorumState", "load_quorum_state", "save_quorum_state"]

FILE_NAME = "quorum-state"
NOBODY = -1
NO_DIRECTORY = uuid.UUID(int=0)


class QuorumState(NamedTuple):
    leader_epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: uuid.UUID | None = None


def load_quorum_state(files: Files, directory: str) -> QuorumState:
    """Read version 0 or 1 of the file; if it is missing, return the state before the first election."""
    path = os.path.join(directory, FILE_NAME)
    try:
        content = json.loads(files.read_file(path))
        voted_directory_id = parse_uuid(content["votedDirectoryId"]) if "votedDirectoryId" in content else None
        return QuorumState(
            int(content["leaderEpoch"]),
            int(content["leaderId"]),
            int(content["votedId"]),
            None if voted_directory_id == NO_DIRECTORY else voted_directory_id,
        )
    except FileNotFoundError:
        return QuorumState()
    except (ValueError, KeyError, TypeError) as error:
        raise StartupError(f"{path} cannot be read ({error}); restore it, or remove it if this node is alone") from None


def save_quorum_state(files: Files, directory: str, state: QuorumState) -> None:
    """Save the state and sync it: using an epoch that can be lost in a crash could give it two leaders."""
    content = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "votedDirectoryId": render_uuid(state.voted_directory_id or NO_DIRECTORY),
        "data_version": 1,
    }
    files.atomic_write(os.path.join(directory, FILE_NAME), json.dumps(content, separators=(",", ":")).encode())
