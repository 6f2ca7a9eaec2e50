"""End, freeze and cut off brokers of a cluster of three under load, and check that nothing acknowledged is lost.

The load: an idempotent producer, a plain one, and one that writes transactions, all with acks=all, on topics with three
replicas and `min.insync.replicas=2`. What happens to one broker after another: it is killed, stopped in order, frozen,
cut off from the other brokers or from everybody, or its disk is full. Victims are chosen at random, or are the leader
of a partition or the active controller. At the end everything is read and compared with what the producers were told
(`kill9.broken_promises`, `transaction_load.broken_transactions`). Start at `run`; `scripts/cluster-kills --kills 30` is
the long version. Cuts and full disks need namespaces (`machines`).
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration import machines as namespaces
from tests.integration.cluster import Cluster, eventually
from tests.integration.kill9 import PARTITIONS, Writer, broken_promises, wait_until_acknowledged
from tests.integration.machines import Machines
from tests.integration.transaction_load import TransactionWriter, broken_transactions

__all__ = ["FAULTS", "FAULTS_OF_MACHINES", "Report", "run"]

FREEZE_S = 3.0
"""Longer than a broker's session, so that the frozen broker loses what it leads."""
SILENCE_LIMIT_S = 60.0
SCRAP = 8192
"""Less room than a batch needs, on a disk that counts as full."""
FAULTS = ("kill", "kill", "freeze", "stop")
FAULTS_OF_MACHINES = ("cut", "cut one way", "unplug", "full disk")
IMPATIENT = {"request.timeout.ms": 4000, "topic.metadata.refresh.interval.ms": 1000}
"""A leader that is cut off from the others, but not from its clients, learns of no successor: the clients must ask
somebody else. With their own settings they would take a minute."""
TOPICS = ("idempotent", "plain", "transactions")


@dataclass
class Report:
    ends: list[str] = field(default_factory=list)
    acknowledged: int = 0
    transactions: int = 0
    silences: dict[str, list[float]] = field(default_factory=dict)
    """For each fault, how long it took until every partition acknowledged again."""
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"{len(self.ends)} faults ({', '.join(self.ends)}), {self.acknowledged} records acknowledged, "
            f"{self.transactions} transactions"
        ]
        for fault, silences in sorted(self.silences.items()):
            lines.append(
                f"{fault}: some partition had no leader that answers for {statistics.median(silences):.2f} s, "
                f"{max(silences):.2f} s at worst"
            )
        verdict = self.problems or ["all that was acknowledged is there, in order, once"]
        return "\n".join([*lines, *self.notes, *verdict])


def run(
    *, kills: int, seed: int, folder: Path, faults: Sequence[str] = FAULTS, machines: Machines | None = None
) -> Report:
    chance, report = random.Random(seed), Report()
    settings = {
        "min.insync.replicas": "2",
        "log.segment.bytes": "2000000",
        "transaction.state.log.min.isr": "2",
    }
    with Cluster(folder, settings=settings, machines=machines) as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, PARTITIONS, 3)
        plain = [
            Writer(cluster.bootstrap_servers, "idempotent", is_idempotent=True, settings=IMPATIENT),
            Writer(cluster.bootstrap_servers, "plain", is_idempotent=False, settings=IMPATIENT),
        ]
        transactional = TransactionWriter(cluster.bootstrap_servers, "transactions", PARTITIONS, seed=seed)
        writers = [*plain, transactional]
        for writer in writers:
            writer.start()
        trouble = _Trouble(cluster, machines, plain, transactional, chance, report)
        try:
            for _ in range(kills):
                trouble.happen(chance.choice(faults))
        except BaseException:
            for writer in writers:
                writer.stop()
            raise
        for writer in writers:
            writer.finish()
        for writer in plain:
            report.acknowledged += writer.acknowledged_count
            problems = broken_promises(cluster.bootstrap_servers, writer, has_one_leader=False)
            report.problems += writer.failures[:5] + problems
        report.transactions = len(transactional.outcomes)
        report.problems += broken_transactions(cluster.bootstrap_servers, transactional)
        report.notes += [f"a transactional producer was replaced: {text}" for text in transactional.fatal_errors]
        report.problems += _tracebacks(cluster)
    return report


def _tracebacks(cluster: Cluster) -> list[str]:
    return [f"node {node} logged a traceback" for node in cluster.nodes if "Traceback" in cluster.output_of(node)]


@dataclass
class _Trouble:
    _cluster: Cluster
    _machines: Machines | None
    _writers: Sequence[Writer]
    _transactional: TransactionWriter
    _chance: random.Random
    _report: Report

    def happen(self, fault: str) -> None:
        """Something happens to one broker under load; writes go on without it; then it is mended and in sync again."""
        wait_until_acknowledged(self._writers, more=self._chance.randrange(1, 300))
        victim = self._victim()
        print(f"{fault} {victim}", flush=True)
        self._report.ends.append(f"{fault} {victim}")
        began = time.monotonic()
        self._begin(fault, victim)
        self._wait_for_every_partition()
        silence = time.monotonic() - began
        self._report.silences.setdefault(fault, []).append(silence)
        if fault not in ("kill", "stop"):
            time.sleep(max(0.0, FREEZE_S - silence))
        self._end(fault, victim)
        for topic in TOPICS:
            self._cluster.wait_until_in_sync(topic)
        self._wait_for_a_transaction()

    def _victim(self) -> int:
        dice = self._chance.random()
        if dice < 0.4:
            return self._cluster.leaders("idempotent").get(0, 1)
        if dice < 0.7 and (controller := self._cluster.active_controller()) >= 0:
            return controller
        return self._chance.choice(list(self._cluster.nodes))

    def _begin(self, fault: str, victim: int) -> None:
        cluster, machines = self._cluster, self._machines
        others = [one for one in cluster.nodes if one != victim]
        if fault == "kill":
            cluster.kill(victim)
        elif fault == "stop":
            cluster.terminate(victim)
        elif fault == "freeze":
            cluster.process(victim).freeze()
        elif machines is None:
            raise ValueError(f"{fault} needs machines")
        elif fault == "unplug":
            machines.unplug(victim)
        elif fault == "full disk":
            machines.fill_disk(victim)
            eventually(lambda: machines.free_bytes(victim) < SCRAP, f"the disk of {victim} is full")
        else:
            machines.cut(victim, others, is_one_way=fault == "cut one way")

    def _end(self, fault: str, victim: int) -> None:
        cluster = self._cluster
        if fault == "freeze":
            cluster.process(victim).thaw()
        elif self._machines is not None:
            self._machines.heal()
            self._machines.empty_disk(victim)
        if fault in ("kill", "stop"):
            cluster.spawn(victim)
        elif (code := cluster.process(victim).exit_code) is not None:
            self._report.notes.append(f"{fault}: broker {victim} ended with {code}, and was started again")
            cluster.spawn(victim)

    # --- waiting ----------------------------------------------------------------------------------------

    def _wait_for_every_partition(self) -> None:
        before = [[len(one) for one in writer.acknowledged] for writer in self._writers]

        def is_answered() -> bool:
            return all(
                len(now) >= count + 5
                for writer, counts in zip(self._writers, before, strict=True)
                for now, count in zip(writer.acknowledged, counts, strict=True)
            )

        eventually(is_answered, "every partition acknowledges again", SILENCE_LIMIT_S)

    def _wait_for_a_transaction(self) -> None:
        before = self._transactional.acknowledged_count
        eventually(lambda: self._transactional.acknowledged_count > before, "a transaction is committed")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/cluster-kills", description="Kill, freeze and cut off brokers of a cluster under load."
    )
    parser.add_argument("--kills", type=int, default=30, help="how many times something happens to a broker")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="repeats a run's choices")
    parser.add_argument("--keep", action="store_true", help="leave the folder for a look")
    parser.add_argument("--fault", action="append", choices=sorted({*FAULTS, *FAULTS_OF_MACHINES}), help="only these")
    arguments = parser.parse_args()
    needs_machines = not arguments.fault or set(arguments.fault) & set(FAULTS_OF_MACHINES)
    obstacle = namespaces.why_not() if needs_machines and not namespaces.is_inside() else None
    if needs_machines and obstacle is None:
        namespaces.enter("tests.integration.cluster_kills", sys.argv[1:])
    if obstacle is not None:
        print(f"without cuts and full disks: {obstacle}")
    faults = arguments.fault or [*FAULTS, *(FAULTS_OF_MACHINES if obstacle is None else ())]
    folder = Path(tempfile.mkdtemp(prefix="moldau-cluster-"))
    machines = Machines(folder, 3) if needs_machines and obstacle is None else None
    report = run(kills=arguments.kills, seed=arguments.seed, folder=folder, faults=faults, machines=machines)
    print(f"seed {arguments.seed}: {report}")
    if machines is not None:
        machines.close()
    if arguments.keep:
        print(f"the cluster's folder is {folder}" + ("" if machines is None else ", without its disks"))
    else:
        shutil.rmtree(folder)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
