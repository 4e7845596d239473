"""Whole runs on every target of tests/targets, with several seeds: verdicts, failures and seconds.

What a target does wrong is for information. That a run is possible and that its verdicts do not depend on the seed are
thresholds, and kfake has more of them: it is the stranger that is tested without a profile.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from fencepost.conformance.analysis.root_cause import BLOCKED_BY
from fencepost.conformance.profile import Profile
from fencepost.model.catalogue.requirement import Tier
from fencepost.model.classic.catalogue import CATALOGUE
from tests.acceptance.framework import Check, Figure, at_most, exactly, without_threshold
from tests.acceptance.runs import (
    KitRun,
    join_ids,
    profile_option,
    run_test_command,
    start_target,
)
from tests.support.odd_brokers import DOUBLES
from tests.targets.running import RunningTarget, load_target

SEEDS = (1, 2, 3, 4, 5)
SEEDS_OF_SLOW_TARGETS = SEEDS[:2]
"""Of brokers on the Java machine, a run on which takes minutes."""
TARGETS = Path(__file__).parents[2] / "targets"
CLUSTER_REQUIREMENTS = tuple(sorted(id for id, each in CATALOGUE.items() if each.tier is Tier.CLUSTER))
ID = re.compile(r"\b[A-Z]+-\d+\b")
KNOWN_CODES = (0, 1, 3)
"""Exit codes of a run that was possible."""
MAX_INCONCLUSIVE, MAX_UNSUPPORTED, MAX_SECONDS = 0.03, 0.15, 180
"""Of kfake's requirements, and seconds of a run on it."""
MANY_SCHEDULES, MAX_SECONDS_OF_MANY = 200, 600
"""Random schedules of a longer run on kfake, and its seconds, shrinking included."""


def double_target(name: str, folder: Path) -> RunningTarget:
    """A double of tests/targets/doubles with its data in `folder`."""
    profile = Profile(TARGETS, start=("doubles/start", name), kill=("doubles/kill", name))
    return RunningTarget(name, profile, folder)


def verdicts_of(run: KitRun) -> Mapping[str, str]:
    """The verdict of each requirement."""
    return {row["id"]: row["verdict"] for row in run.report["requirements"]}


def describe_run(what: str, run: KitRun) -> Iterator[Figure]:
    """The figures of one run."""
    verdicts = verdicts_of(run)
    counts = Counter(verdicts.values()).most_common()
    failures = join_ids(name for name, verdict in verdicts.items() if verdict == "fail")
    yield Figure(f"{what}: exit code", run.exit_code, "0, 1 or 3", run.exit_code in KNOWN_CODES)
    yield without_threshold(f"{what}: verdicts", ", ".join(f"{count} {verdict}" for verdict, count in counts))
    yield without_threshold(f"{what}: fail", failures)
    yield exactly(f"{what}: notes that name what did not fail", join_ids(dangling_notes(run)), "none")
    yield without_threshold(f"{what}: seconds", run.seconds)


def dangling_notes(run: KitRun) -> Iterator[str]:
    """The requirements with a note that names another one, which did not fail."""
    failed = {name for name, verdict in verdicts_of(run).items() if verdict in ("fail", "known")}
    for row in run.report["requirements"]:
        if BLOCKED_BY in row.get("note", ""):
            named = set(ID.findall(row["note"].partition(BLOCKED_BY)[2]))
            if named - failed:
                yield row["id"]


def undecided_without_cause(run: KitRun) -> Iterator[str]:
    """The inconclusive requirements that no failed one keeps from a verdict."""
    rows = run.report["requirements"]
    return (row["id"] for row in rows if row["verdict"] == "inconclusive" and not row["causes"])


def compare_runs(runs: Sequence[Mapping[str, str]]) -> Figure:
    """The requirements whose verdict is not the same in all runs, each given by its verdicts."""
    differing = {name for run in runs for name, verdict in run.items() if verdict != runs[0].get(name)}
    return exactly("verdicts that differ between seeds", join_ids(differing), "none")


def check_target(
    target: RunningTarget | None,
    folder: Path,
    options: Sequence[str] = (),
    *,
    is_stranger: bool = False,
    seeds: Sequence[int] = SEEDS,
) -> Iterator[Figure]:
    """Run the kit on a target with each seed; None is the bundled coordinator in process."""
    if target is None:
        yield from run_seeds("bundled", folder, options, is_stranger)
        return
    with start_target(target) as address:
        yield from run_seeds(address, folder, options, is_stranger, seeds)


def run_seeds(
    address: str, folder: Path, options: Sequence[str], is_stranger: bool, seeds: Sequence[int] = SEEDS
) -> Iterator[Figure]:
    """Run the kit on the target at `address` with each seed."""
    runs = []
    for seed in seeds:
        run = run_test_command(address, folder, *options, "--seed", str(seed), run_folder=folder / "run")
        runs.append(verdicts_of(run))
        yield from describe_run(f"seed {seed}", run)
        if is_stranger:
            count = len(runs[-1])
            unexplained = sum(1 for _ in undecided_without_cause(run))
            yield at_most(f"seed {seed}: share of inconclusive without a cause", unexplained / count, MAX_INCONCLUSIVE)
            yield at_most(f"seed {seed}: share of unsupported", run.count("unsupported") / count, MAX_UNSUPPORTED)
            yield at_most(f"seed {seed}: seconds of a stranger", run.seconds, MAX_SECONDS)
    yield compare_runs(runs)


def check_named(name: str, folder: Path) -> Iterator[Figure]:
    """The target of tests/targets/NAME.toml, with its profile."""
    seeds = SEEDS_OF_SLOW_TARGETS if name.startswith("kafka") else SEEDS
    return check_target(load_target(name, folder / "run"), folder, profile_option(name), seeds=seeds)


def check_moves(name: str, folder: Path) -> Iterator[Figure]:
    """The requirements that take several nodes, on a cluster that moves groups as its profile says."""
    with start_target(load_target(name, folder / "run")) as address:
        for seed in SEEDS:
            options = ["--only", *CLUSTER_REQUIREMENTS, "--seed", str(seed), *profile_option(name)]
            run = run_test_command(address, folder, *options, run_folder=folder / "run")
            missed = (id for id, verdict in verdicts_of(run).items() if verdict != "pass")
            yield exactly(f"seed {seed}: requirements without a pass", join_ids(missed), "none")
            yield without_threshold(f"seed {seed}: seconds", run.seconds)


def check_secure(folder: Path) -> Iterator[Figure]:
    """The broker behind TLS and SASL, by SCRAM."""
    target, profile = load_target("kafka_sasl_ssl", folder / "run"), folder / "sasl-ssl.toml"
    with start_target(target) as address:
        profile.write_text(target.run("kafka/sasl-ssl", "profile", "SCRAM-SHA-512"))
        secure = address.replace("kafka://", "kafka+ssl://")
        options = ["--profile", str(profile)]
        yield from run_seeds(secure, folder, options, is_stranger=False, seeds=SEEDS_OF_SLOW_TARGETS)


def check_kfake(folder: Path) -> Iterator[Figure]:
    """kfake as a stranger meets it: without a profile."""
    return check_target(load_target("kfake", folder / "run"), folder, is_stranger=True)


def check_many_schedules(folder: Path) -> Iterator[Figure]:
    """kfake under many random schedules, which are shrunk."""
    with start_target(load_target("kfake", folder / "run")) as address:
        options = ["--schedules", str(MANY_SCHEDULES), "--seed", str(SEEDS[0])]
        run = run_test_command(address, folder, *options, run_folder=folder / "run")
        yield from describe_run(f"{MANY_SCHEDULES} schedules", run)
        yield at_most(f"{MANY_SCHEDULES} schedules: seconds of a stranger", run.seconds, MAX_SECONDS_OF_MANY)


def check_double(name: str, folder: Path) -> Iterator[Figure]:
    """A double, without a profile."""
    return check_target(double_target(name, folder / "run"), folder)


def check_bundled(folder: Path) -> Iterator[Figure]:
    """The bundled coordinator."""
    return check_target(None, folder)


CHECKS = (
    Check("bundled", "the bundled coordinator in process", check_bundled),
    *(
        Check(name, title, partial(check_named, name))
        for name, title in (
            ("kafka4", "Apache Kafka 4.x"),
            ("kafka3", "Apache Kafka 3.9.x"),
            ("kafka34", "Apache Kafka 3.4.1"),
            ("kafka28", "Apache Kafka 2.8.2 with ZooKeeper"),
            ("kafka_cluster", "Apache Kafka 4.x, three nodes"),
            ("mock", "librdkafka's mock cluster"),
        )
    ),
    Check("moves-graceful", "groups moved between three nodes", partial(check_moves, "kafka_cluster")),
    Check("moves-by-kill", "groups moved by killing their coordinator", partial(check_moves, "kafka_cluster_kill")),
    Check("kafka_sasl_ssl", "Apache Kafka 4.x behind TLS and SASL", check_secure),
    Check("kfake", "kfake, without a profile", check_kfake),
    Check("kfake-schedules", "kfake under many random schedules", check_many_schedules),
    *(Check(name, f"the double that {name.replace('-', ' ')}", partial(check_double, name)) for name in DOUBLES),
)
