"""Thresholds of real clients: whole catalogues in every mode, random schedules, and what other clients do wrong."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fencepost.conformance.clients.classic import DRIVEN_CLIENTS
from fencepost.conformance.clients.findings import reason_left_out
from fencepost.conformance.results import ExitCode
from fencepost.model.classic.catalogue.client import CLIENT_CATALOGUE
from tests.acceptance.checks.conformance import command_environment, join_ids
from tests.acceptance.client_batches import SCHEDULES, ClientBatch, check_client_batches
from tests.acceptance.client_findings import SOURCE_OF_FAILURES, SOURCE_OF_REMARKS
from tests.acceptance.framework import (
    ROOT,
    Check,
    Figure,
    MeasurementError,
    at_least,
    at_most,
    exactly,
    without_threshold,
)
from tests.acceptance.odd_clients import check_odd_clients
from tests.targets.clients.builds import EXAMPLES, build_franz_go, install_kafkajs
from tests.targets.clients.java_driver import MODES, MORE_MODES, java_driver
from tests.targets.kafka.installation import VERSIONS

REPORTS_VARIABLE = "FENCEPOST_REPORTS"
"""The folder in which the reports of whole runs are kept."""
AT_ONCE = 14
MEASURED = (ExitCode.CONFORMANT, ExitCode.VIOLATION, ExitCode.INCONCLUSIVE)
MAX_SECONDS = 300
TESTED = 170
"""Of the catalogue, on at least one real client."""
BATCH_SCHEDULES = 150
SPARE_SCHEDULES = 50
"""Played beyond the thousand: those in which the kit was late do not count."""
FIRST_SEEDS = {"4": 7001, "3": 8001}
"""Drawings before, from 3001 to 6001, showed false alarms that were mended; so did the first three modes of these."""
OTHERS: Mapping[str, Callable[[], tuple[str, ...]]] = {
    "librdkafka": lambda: (sys.executable, str(EXAMPLES / "confluent_driver.py")),
    "kafka-python": lambda: (sys.executable, str(EXAMPLES / "kafka_python_driver.py")),
    "aiokafka": lambda: (sys.executable, str(EXAMPLES / "aiokafka_driver.py")),
    "franz-go": lambda: (str(build_franz_go()), "range"),
    "kafkajs": lambda: ("env", f"NODE_PATH={install_kafkajs()}", "node", str(EXAMPLES / "kafkajs_driver.js")),
}
"""The commands of the drivers; one that has to be built or installed is, when it is asked for."""
Report = Mapping[str, Any]


def run_client(name: str, folder: Path, command: Sequence[str]) -> tuple[Report, float]:
    """The report on the client of a command, and the seconds that it took. Raises `MeasurementError`."""
    kept = Path(os.environ.get(REPORTS_VARIABLE, folder))
    kept.mkdir(parents=True, exist_ok=True)
    file = kept / f"{name}.json"
    words = ["test-client", "--driven", "-q", "--at-once", str(AT_ONCE), "--json", str(file), "--", *command]
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "fencepost", *words], cwd=ROOT, env=command_environment(), stdout=subprocess.DEVNULL
    )
    if done.returncode not in MEASURED:
        raise MeasurementError(f"{name}: exit code {done.returncode}")
    report = json.loads(file.read_text())
    if report["cut_short"]:
        raise MeasurementError(f"{name}: the run was cut short")
    return report, round(time.monotonic() - begun, 1)


def ids_with(report: Report, *verdicts: str) -> list[str]:
    """The requirements with one of these verdicts."""
    return [row["id"] for row in report["requirements"] if row["verdict"] in verdicts]


def check_java(version: str, mode: str, folder: Path) -> Iterator[Figure]:
    """Apache Kafka's client in a mode: nothing fails."""
    command = (*java_driver(VERSIONS[version]), *MODES[mode])
    report, seconds = run_client(f"java{version}-{mode}", folder, command)
    yield exactly("fail", join_ids(ids_with(report, "fail")), "none")
    yield without_threshold("pass", len(ids_with(report, "pass")))
    yield without_threshold("inconclusive", join_ids(ids_with(report, "inconclusive")))
    unusual = [row["id"] for row in report["requirements"] if (row.get("remark") or {}).get("kind") == "unusual"]
    yield without_threshold("recommendations not kept", join_ids(unusual))
    strange = join_ids(set(unusual) - SOURCE_OF_REMARKS.keys())
    yield exactly("recommendations not kept, without a place in its source", strange, "none")
    yield without_threshold("seconds", seconds)


def java_batches(version: str) -> Iterator[ClientBatch]:
    """A batch for each mode; together a thousand schedules, and some to spare."""
    modes = MODES | MORE_MODES
    driver = java_driver(VERSIONS[version])
    first = SCHEDULES + SPARE_SCHEDULES - (len(modes) - 1) * BATCH_SCHEDULES
    for number, (mode, settings) in enumerate(modes.items()):
        count = BATCH_SCHEDULES if number else first
        yield ClientBatch(f"java{version}-{mode}", (*driver, *settings), FIRST_SEEDS[version] + number, count)


def check_java_schedules(version: str, folder: Path) -> Iterator[Figure]:
    """Apache Kafka's client under random schedules: nothing is violated."""
    yield from check_client_batches(java_batches(version), folder, SCHEDULES)


def check_other(name: str, folder: Path) -> Iterator[Figure]:
    """A client of somebody else: what it does wrong is in its source."""
    command = OTHERS[name]()
    report, seconds = run_client(name, folder, command)
    yield at_most("seconds of a full report", seconds, MAX_SECONDS)
    yield without_threshold("pass", len(ids_with(report, "pass")))
    failed = ids_with(report, "fail")
    yield without_threshold("fail", join_ids(failed))
    yield exactly("fail without a place in its source", join_ids(set(failed) - SOURCE_OF_FAILURES[name].keys()), "none")
    yield without_threshold("inconclusive", join_ids(ids_with(report, "inconclusive")))


def check_tested(folder: Path) -> Iterator[Figure]:
    """How much of the catalogue the kept reports test."""
    kept = os.environ.get(REPORTS_VARIABLE)
    if kept is None:
        raise MeasurementError(f"set {REPORTS_VARIABLE} to the folder with the reports of the other checks")
    reports = [json.loads(file.read_text()) for file in sorted(Path(kept).glob("*.json"))]
    tested = {id for report in reports for id in ids_with(report, "pass", "fail")}
    yield without_threshold("reports", len(reports))
    yield at_least("requirements tested on a real client", len(tested), TESTED)
    rest = CLIENT_CATALOGUE.keys() - tested
    reachable = {id for id in rest if not reason_left_out(DRIVEN_CLIENTS, CLIENT_CATALOGUE[id])}
    yield without_threshold("not tested, for the reason that the catalogue gives", join_ids(rest - reachable))
    yield without_threshold("not tested, though a client could show it", join_ids(reachable))


CHECKS = (
    *(
        Check(
            f"java{version}-{mode}",
            f"Apache Kafka's client {name} keeps the catalogue",
            partial(check_java, version, mode),
        )
        for version, name in (("4", "4.x"), ("3", "3.9.x"))
        for mode in MODES
    ),
    Check("java4-schedules", "the client 4.x under random schedules", partial(check_java_schedules, "4")),
    Check("java3-schedules", "the client 3.9.x under random schedules", partial(check_java_schedules, "3")),
    *(Check(name, f"a full report on {name}", partial(check_other, name)) for name in OTHERS),
    Check("odd-clients", "a program that is no client, or no good one, is told in a line", check_odd_clients),
    Check("tested", "how much of the catalogue is tested on real clients", check_tested),
)
