"""Hooks and fixtures of all tests: extras that may be missing, and real targets, each started at most once in a run."""

import re
import signal
from collections.abc import Generator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.async_tests import run_async_test
from tests.support.extras import reason_to_skip, require_extras, skip_without_extra
from tests.support.group_driver import BundledGroup, open_group
from tests.support.slow_tests import NIGHTLY_SECONDS, read_slow_tests
from tests.targets.running import RunningTarget, shared_target
from tests.targets.session import TargetSession, hold_targets

# The same examples every time, and no opinion on how quick the machine is.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION = pytest.StashKey[TargetSession]()
KAFKAS = ("kafka4", "kafka3", "kafka34", "kafka28", "kafka_cluster", "kafka_sasl_ssl")
"""Marks and fixtures of the targets that are Apache Kafka."""
SHARED_TARGETS = (*KAFKAS, "zookeeper", "kfake", "mock")
"""Marks and fixtures of targets that all workers share: tests that need one run one at a time, for some restart it."""
SLOW = (*SHARED_TARGETS, "java", "go", "node", "spark", "cluster")
"""Fixtures and marks of tests that need a Java, a Go or a Node."""
LEFT_OUT = ("cluster", "acceptance")
"""Marks of tests that run only where `-m` names the mark, or an argument the test."""


def pytest_configure(config: pytest.Config) -> None:
    """Begin a session of targets, and hear Ctrl-C even where a shell in the background has switched it off."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.stash[SESSION] = TargetSession()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Kill the targets that still live."""
    if SESSION in config.stash:
        config.stash[SESSION].end()


def needs_of(item: pytest.Item) -> set[str]:
    """The names of a test's marks and fixtures."""
    return {mark.name for mark in item.iter_markers()} | set(getattr(item, "fixturenames", ()))


def is_asked_for(item: pytest.Item) -> bool:
    """Whether a test has no mark of `LEFT_OUT`, or `-m` names the mark, or an argument of the command the test."""
    named = set(re.findall(r"\w+", item.config.option.markexpr))
    test = item.nodeid.partition("::")[2]
    if any("::" in argument and test.startswith(argument.partition("::")[2]) for argument in item.config.args):
        return True
    return all(name in named for name in LEFT_OUT if item.get_closest_marker(name))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark slow tests by what they need and what they were measured to take, and deselect what nobody asks for."""
    measured = read_slow_tests()
    for item in items:
        seconds = measured.get(item.nodeid.partition("[")[0], 0.0)
        if needs_of(item).intersection(SLOW) or item.get_closest_marker("slow") or seconds >= NIGHTLY_SECONDS:
            item.add_marker("slow")
            item.add_marker("nightly")
        elif seconds:
            item.add_marker("slow")
    config.hook.pytest_deselected(items=[item for item in items if not is_asked_for(item)])
    items[:] = [item for item in items if is_asked_for(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the shared targets that a test uses from its setup to its end."""
    with hold_targets(needs_of(item).intersection(SHARED_TARGETS)):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Skip a test module that imports an extra which is not installed."""
    report = yield
    call: pytest.CallInfo[object] | None = getattr(report, "call", None)
    if call is not None and call.excinfo is not None and (reason := reason_to_skip(call.excinfo.value)):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, None, None]:
    """Skip a test that is marked with an extra, or whose fixtures import one, which is not installed."""
    with skip_without_extra():
        require_extras(item)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Skip a test that imports an extra which is not installed."""
    with skip_without_extra():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def test_…`."""
    return run_async_test(pyfuncitem) or None


@pytest.fixture
def bundled() -> AbstractAsyncContextManager[BundledGroup]:
    """The bundled coordinator with default settings, for an async test."""
    return open_group()


@pytest.fixture(scope="session")
def kafka4() -> RunningTarget:
    """The newest Apache Kafka 4.x; mark the test `kafka4`."""
    return shared_target("kafka4")


@pytest.fixture(scope="session")
def kafka3() -> RunningTarget:
    """The newest Apache Kafka 3.9.x; mark the test `kafka3`."""
    return shared_target("kafka3")


@pytest.fixture(scope="session")
def kafka34() -> RunningTarget:
    """Apache Kafka 3.4.1; mark the test `kafka34`."""
    return shared_target("kafka34")


@pytest.fixture(scope="session")
def kafka28() -> RunningTarget:
    """Apache Kafka 2.8.2 with its ZooKeeper; mark the test `kafka28`."""
    return shared_target("kafka28")


@pytest.fixture(scope="session")
def kafka_cluster() -> RunningTarget:
    """Three nodes of the newest Apache Kafka 4.x; mark the test `kafka_cluster`."""
    return shared_target("kafka_cluster")


@pytest.fixture(scope="session")
def kafka_sasl_ssl() -> RunningTarget:
    """The newest Apache Kafka 4.x behind TLS and SASL; mark the test `kafka_sasl_ssl`."""
    return shared_target("kafka_sasl_ssl")


@pytest.fixture(scope="session")
def zookeeper() -> RunningTarget:
    """A ZooKeeper alone; mark the test `zookeeper`."""
    return shared_target("zookeeper")


@pytest.fixture(scope="session")
def kfake() -> RunningTarget:
    """kfake, the imitation that comes with the client franz-go; mark the test `kfake`."""
    return shared_target("kfake")


@pytest.fixture(scope="session")
def mock() -> RunningTarget:
    """librdkafka's mock cluster; mark the test `mock`."""
    return shared_target("mock")


@pytest.fixture(scope="session")
def spark() -> Iterator["SparkSession"]:
    """Spark on this machine; it takes long to start."""
    from fencepost.traces.pipeline.spark_session import spark_session

    # Small jobs: a Java that compiles little and collects simply is quicker.
    quick = {"spark.driver.memory": "800m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    with spark_session("tests", "local[2]", quick | {"spark.sql.shuffle.partitions": "2"}) as running:
        yield running
