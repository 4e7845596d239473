"""Thresholds of the judge of members: Apache Kafka's own clients, recorded beside a broker, are never blamed."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from fencepost.adapters.record.recorder import RecordingOptions
from fencepost.conformance.analysis.trace_report import judge_files
from fencepost.conformance.results import Verdict
from tests.acceptance.checks.conformance import start_target
from tests.acceptance.framework import Check, Figure, MeasurementError, at_least, exactly, without_threshold
from tests.support.real_clients import TOPIC, produce
from tests.support.recorder_thread import parse_bootstrap, record_in_thread
from tests.support.trace_topics import create_topic
from tests.targets.kafka.installation import JVM_OPTIONS, VERSIONS, find_java, install
from tests.targets.process import MissingDependencyError
from tests.targets.running import load_target

SEED = 20_261_125
PROGRAM = Path(__file__).parents[2] / "targets" / "clients" / "JavaConsumer.java"
ASSIGNOR = "org.apache.kafka.clients.consumer."
MODES = {
    "eager": ("RangeAssignor",),
    "cooperative": ("CooperativeStickyAssignor",),
    "mixed": ("RangeAssignor", "CooperativeStickyAssignor"),
    "sticky": ("StickyAssignor", "RoundRobinAssignor"),
}
"""The strategies of the members of a group."""
MEMBERS, STEPS, STEP_SECONDS, PARTITIONS = 3, 12, 3.0, 6
"""Of each group: its members at most, and what happens to it, a step at a time."""
SETTINGS = (
    "group.protocol=classic",
    "session.timeout.ms=6000",
    "heartbeat.interval.ms=500",
    "max.poll.interval.ms=10000",
    "metadata.max.age.ms=1000",
    "auto.commit.interval.ms=1000",
)


@dataclass(slots=True)
class JavaGroup:
    """The members of one group, each a process, and what happens to them at random."""

    command: tuple[str, ...]
    bootstrap: str
    name: str
    strategies: tuple[str, ...]
    draw: random.Random
    members: list[subprocess.Popen[bytes]] = field(default_factory=list)
    started: int = 0

    def take_step(self) -> str:
        """Start a member, end one, kill one, or hold one up for longer than its session."""
        kinds = ["start"] * (2 if len(self.members) < MEMBERS else 0)
        kinds += ["end", "kill", "pause", "wait"] if self.members else []
        kind = self.draw.choice(kinds)
        member = self.draw.choice(self.members) if self.members else None
        if kind == "start":
            self.start_member()
        elif kind in ("end", "kill") and member is not None:
            member.send_signal(signal.SIGTERM if kind == "end" else signal.SIGKILL)
            self.members.remove(member)
        elif kind == "pause" and member is not None:
            member.send_signal(signal.SIGSTOP)
            time.sleep(self.draw.choice((1.0, 8.0)))
            member.send_signal(signal.SIGCONT)
        return kind

    def start_member(self) -> None:
        """Start a member; every third is a static one."""
        self.started += 1
        names = ",".join(f"{ASSIGNOR}{each}" for each in self.strategies)
        more = [f"group.instance.id={self.name}-{self.started % MEMBERS}"] if self.started % MEMBERS == 0 else []
        arguments = (self.bootstrap, self.name, TOPIC, f"partition.assignment.strategy={names}", *SETTINGS, *more)
        self.members.append(
            subprocess.Popen([*self.command, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )

    def close(self) -> None:
        """End all members."""
        for member in self.members:
            member.send_signal(signal.SIGTERM)
        for member in self.members:
            try:
                member.wait(20)
            except subprocess.TimeoutExpired:
                member.kill()
                member.wait()


def check_java(version: str, folder: Path) -> Iterator[Figure]:
    """Members of Apache Kafka's client in four groups at once, that come, go, die and stand still."""
    try:
        jars = install(VERSIONS[version]) / "jars"
        java = Path(find_java()).resolve()
        compile_program(str(java.with_name("javac")), f"{jars}/*", folder)
        command = (str(java), *JVM_OPTIONS, "-Xms32m", "-Xmx128m", "-cp", f"{jars}/*:{folder}", PROGRAM.stem)
    except MissingDependencyError as error:
        raise MeasurementError(str(error)) from None
    path, kinds = folder / "recorded.jsonl", Counter[str]()
    with ExitStack() as stack:
        upstream = stack.enter_context(start_target(load_target(f"kafka{version}", folder / "run")))
        options = RecordingOptions(("127.0.0.1", 0), parse_bootstrap(upstream.removeprefix("kafka://")), path)
        session = stack.enter_context(record_in_thread(options))
        create_topic(upstream.removeprefix("kafka://"), TOPIC, PARTITIONS)
        produce(session.bootstrap, range(200))
        groups = [
            JavaGroup(command, session.bootstrap, f"{mode}-{SEED}", strategies, random.Random(f"{SEED} {mode}"))
            for mode, strategies in MODES.items()
        ]
        for group in groups:
            stack.callback(group.close)
        for _ in range(STEPS):
            for group in groups:
                kinds[group.take_step()] += 1
                time.sleep(STEP_SECONDS)
    kept = os.environ.get("FENCEPOST_RECORDINGS")
    if kept is not None:
        (Path(kept) / f"java{version}.jsonl").write_bytes(path.read_bytes())
    yield from figures_of(path, kinds)


def compile_program(compiler: str, path: str, folder: Path) -> None:
    """Compile the program into a folder: to do that at each start takes longer than a step. Raises MeasurementError."""
    done = subprocess.run([compiler, "-cp", path, "-d", str(folder), str(PROGRAM)], capture_output=True, text=True)
    if done.returncode:
        raise MeasurementError(f"{PROGRAM.name} cannot be compiled: {done.stderr.strip()}")


def figures_of(path: Path, kinds: Counter[str]) -> Iterator[Figure]:
    """What the report on a recording says of coordinator and members."""
    report = judge_files([path], lambda progress: None)
    members = report.members
    assert members is not None
    yield without_threshold("what happened", ", ".join(f"{kind} {times}" for kind, times in sorted(kinds.items())))
    yield without_threshold("events", report.events)
    yield exactly("requirements that the coordinator violates", len(report.failed_results()), 0)
    failed = ", ".join(result.id for result in members.failed_results())
    yield exactly("requirements that members violate", failed or "none", "none")
    passed = [result for result in members.results if result.verdict is Verdict.PASS]
    yield at_least("requirements of members that were seen to be kept", len(passed), 20)
    yield without_threshold("checks of members", sum(result.checks for result in members.results))


CHECKS = tuple(
    Check(
        f"java{version}",
        f"members of Apache Kafka {VERSIONS[version]}'s client, recorded",
        partial(check_java, version),
    )
    for version in ("4", "3")
)
