"""A simulated power failure: everything that was not synced is lost.

`ForgetfulFiles` works on a real directory and records what was synced: a file's bytes and a directory's entries as of
their last sync. `lose_power` then restores the worst state that a crash of the machine can leave. Stricter than most
file systems, which keep more than they guarantee.
Start at `ForgetfulFiles.lose_power`.
"""

from __future__ import annotations

import os
import random
import shutil
import stat
import threading

from moldau.log.files import Files

__all__ = ["ForgetfulFiles"]


class ForgetfulFiles(Files):
    """Everything under `root`. Its content at the beginning counts as synced."""

    def __init__(self, root: str) -> None:
        self.root = os.path.abspath(root)
        self._lock = threading.Lock()
        self._contents: dict[int, bytes] = {}
        """Synced bytes of each file, by inode."""
        self._entries: dict[int, dict[str, int]] = {}
        """Synced entries of each directory, by inode."""
        self._held: list[int] = []
        """Descriptors that keep inode numbers from being reused for another file."""
        self._hold(self.root)
        self._remember_tree(self.root)

    # --- what counts as synced --------------------------------------------------------------------------

    def sync(self, fd: int) -> None:
        with self._lock:
            # Read before the sync: bytes written while it runs may or may not be on disk.
            self._remember_file(f"/proc/self/fd/{fd}")
        super().sync(fd)

    def sync_directory(self, path: str) -> None:
        with self._lock:
            self._remember_directory(path)
        super().sync_directory(path)

    def _remember_file(self, path: str) -> None:
        inode = os.stat(path).st_ino
        if inode not in self._contents:
            self._hold(path)
        with open(path, "rb") as file:
            self._contents[inode] = file.read()

    def _remember_directory(self, path: str) -> None:
        inode = os.stat(path).st_ino
        if inode not in self._entries:
            self._hold(path)
        entries: dict[str, int] = {}
        for name in os.listdir(path):
            child = os.path.join(path, name)
            entries[name] = os.stat(child).st_ino
            if entries[name] not in self._contents and entries[name] not in self._entries:
                self._hold(child)
                self._know_kind(child, entries[name])
        self._entries[inode] = entries

    def _know_kind(self, path: str, inode: int) -> None:
        """An entry whose own content was never synced is restored empty."""
        if stat.S_ISDIR(os.stat(path).st_mode):
            self._entries[inode] = {}
        else:
            self._contents[inode] = b""

    def _hold(self, path: str) -> None:
        self._held.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def _remember_tree(self, path: str) -> None:
        for name in os.listdir(path):
            child = os.path.join(path, name)
            if os.path.isdir(child):
                self._remember_tree(child)
            else:
                self._remember_file(child)
        self._remember_directory(path)

    # --- the crash --------------------------------------------------------------------------------------

    def lose_power(self, chance: random.Random | None = None) -> None:
        """Leave on disk only what was synced. All users of these files must have ended.

        With `chance`, files that have grown since their last sync keep a random part of what was added, like a disk
        interrupted while writing back.
        """
        with self._lock:
            current = self._current_contents()
            root = os.stat(self.root).st_ino
            for name in os.listdir(self.root):
                child = os.path.join(self.root, name)
                shutil.rmtree(child) if os.path.isdir(child) else os.unlink(child)
            self._restore(self.root, self._entries[root], current, chance)
            self._forget_all()
            self._hold(self.root)
            self._remember_tree(self.root)

    def _current_contents(self) -> dict[int, bytes]:
        found = {}
        for directory, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    found[os.stat(path).st_ino] = file.read()
        return found

    def _restore(
        self, path: str, entries: dict[str, int], current: dict[int, bytes], chance: random.Random | None
    ) -> None:
        for name, inode in entries.items():
            child = os.path.join(path, name)
            if inode in self._entries:
                os.mkdir(child)
                self._restore(child, self._entries[inode], current, chance)
                continue
            content = self._contents[inode]
            if chance is not None:
                content += _survivors(content, current.get(inode, b""), chance)
            with open(child, "wb") as file:
                file.write(content)

    def _forget_all(self) -> None:
        for fd in self._held:
            os.close(fd)
        self._held.clear()
        self._contents.clear()
        self._entries.clear()

    def close(self, fd: int | None = None) -> None:
        """Close `fd`, or without one release everything held for `lose_power`."""
        if fd is not None:
            super().close(fd)
        else:
            self._forget_all()


def _survivors(synced: bytes, current: bytes, chance: random.Random) -> bytes:
    """What may be left of the bytes after the synced ones: a part, sometimes with garbage at its end."""
    if not current.startswith(synced):
        return b""
    grown = current[len(synced) :]
    kept = grown[: chance.randint(0, len(grown))]
    if len(kept) < len(grown) and chance.random() < 0.5:
        kept += bytes(min(len(grown) - len(kept), 512))
    return kept
