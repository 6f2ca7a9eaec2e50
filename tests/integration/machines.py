"""A machine of its own for each broker of a test: a network that can be cut, and a small disk that can be full.

Both are Linux namespaces. The process that drives the test first moves into namespaces of its own (`enter`), so that
nothing it does is seen by the rest of the machine and nothing remains when it ends; each node gets another network
namespace, tied to the driver's by a pair of interfaces, and a file system in memory. Packets between nodes are routed
by the driver's namespace, where a rule drops them without a word, as a broken switch does. Start at `Machines`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

__all__ = ["Machines", "enter", "is_inside", "why_not"]

SLACK = 64 * 1024
INSIDE = "MOLDAU_TEST_NAMESPACES"
ROOT_ONLY = ["unshare", "--mount", "--net"]
ANYBODY = ["unshare", "--user", "--map-root-user", "--mount", "--net"]


def _unshare() -> list[str]:
    return ROOT_ONLY if os.geteuid() == 0 else ANYBODY


def is_inside() -> bool:
    return INSIDE in os.environ


def why_not() -> str | None:
    """Why this machine does not allow it; `None` if it does."""
    attempt = "mount -t tmpfs tmpfs /run && mkdir /run/netns && ip netns add probe && ip link add probe type veth"
    try:
        command = [*_unshare(), "sh", "-c", attempt]
        tried = subprocess.run(command, check=False, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if tried.returncode == 0 else f"namespaces are not allowed here: {tried.stderr.strip()}"


def enter(module: str, arguments: Sequence[str]) -> None:
    """Go on in namespaces of this process's own: runs the module again there, unless it is there already."""
    if not is_inside():
        command = [*_unshare(), sys.executable, "-m", module, *arguments]
        os.execvpe(command[0], command, os.environ | {INSIDE: "1"})


class Machines:
    """Machines 1 to `count`. Only within namespaces of one's own (`enter`)."""

    def __init__(self, folder: Path, count: int, *, disk_mb: int = 512) -> None:
        assert is_inside(), "Machines would change this machine's own network"
        self.nodes = range(1, count + 1)
        self._folder = folder
        self._disk_mb = disk_mb
        _run("mount", "-t", "tmpfs", "tmpfs", "/run")
        _run("ip", "link", "set", "lo", "up")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        for node in self.nodes:
            self._connect(node)
            self.disk_of(node).mkdir()
            _run("mount", "-t", "tmpfs", "-o", f"size={disk_mb}m", "tmpfs", str(self.disk_of(node)))

    def close(self) -> None:
        """Take the disks away, with what is on them; the network goes with this process."""
        for node in self.nodes:
            _run("umount", "--lazy", str(self.disk_of(node)))

    def _connect(self, node: int) -> None:
        name, link = f"node{node}", f"to-node{node}"
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "addr", "add", f"10.77.{node}.1/24", "dev", link)
        _run("ip", "link", "set", link, "up")
        inside = ("ip", "-n", name)
        _run(*inside, "addr", "add", f"{self.host_of(node)}/24", "dev", "eth0")
        _run(*inside, "link", "set", "eth0", "up")
        _run(*inside, "link", "set", "lo", "up")
        _run(*inside, "route", "add", "default", "via", f"10.77.{node}.1")

    def host_of(self, node: int) -> str:
        return f"10.77.{node}.2"

    def disk_of(self, node: int) -> Path:
        return self._folder / f"data{node}"

    def command_of(self, node: int) -> list[str]:
        """What a command begins with to run on this machine."""
        return ["nsenter", f"--net=/run/netns/node{node}"]

    # --- the network ------------------------------------------------------------------------------------

    def cut(self, node: int, others: Iterable[int], *, is_one_way: bool = False) -> None:
        """Let nothing pass from a node to others, nor back unless it is one way; clients reach it as before."""
        for other in others:
            self._drop(node, other)
            if not is_one_way:
                self._drop(other, node)

    def _drop(self, source: int, target: int) -> None:
        _run("ip", "rule", "add", "from", self.host_of(source), "to", self.host_of(target), "blackhole")

    def unplug(self, node: int) -> None:
        """Nobody reaches the node any more, nor it anybody."""
        _run("ip", "link", "set", f"to-node{node}", "down")

    def heal(self) -> None:
        for node in self.nodes:
            _run("ip", "link", "set", f"to-node{node}", "up")
        while subprocess.run(["ip", "rule", "del", "blackhole"], check=False, capture_output=True).returncode == 0:
            pass

    # --- the disk ---------------------------------------------------------------------------------------

    def fill_disk(self, node: int) -> None:
        """Leave hardly any room on the node's disk, so that what is written next takes the last of it."""
        for _ in range(50):
            found = os.statvfs(self.disk_of(node))
            used = (found.f_blocks - found.f_bfree) * found.f_frsize
            try:
                self._resize(node, f"{used + SLACK}")
            except RuntimeError:
                continue  # more was written meanwhile
            return
        raise RuntimeError(f"the disk of node {node} could not be filled")

    def free_bytes(self, node: int) -> int:
        found = os.statvfs(self.disk_of(node))
        return found.f_bavail * found.f_frsize

    def empty_disk(self, node: int) -> None:
        self._resize(node, f"{self._disk_mb}m")

    def _resize(self, node: int, size: str) -> None:
        _run("mount", "-o", f"remount,size={size}", str(self.disk_of(node)))


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
