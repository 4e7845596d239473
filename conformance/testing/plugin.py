"""The pytest plugin. PYTEST_DONT_REWRITE

pytest loads this module at its start in every project where Fencepost is installed: it imports nothing of the kit, and
each hook returns at once where no test asks for the kit.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fencepost.conformance.testing.case import Case
    from fencepost.conformance.testing.group_schedule import GroupSchedule
    from fencepost.conformance.testing.recording import Recorder
    from fencepost.conformance.testing.session import RunView
    from fencepost.conformance.testing.targets import ServedCoordinator, TestedTarget

TEXTS = {
    "target": ("ADDR", "the broker to be tested, or bundled, where no fixture fencepost_target says otherwise"),
    "profile": ("F", "what cannot be asked of the target, in TOML"),
    "only": ("P", "requirements to test, such as JOIN-29 or 'JOIN-*'; may be repeated"),
    "smoke": ("", "play only the smoke scenarios"),
    "seed": ("S", "seed of everything random (default: 0)"),
    "schedules": ("N", "also run N random schedules, in batches"),
    "json": ("F", "write the report as JSON"),
    "html": ("F", "write the report as a page"),
    "save": ("DIR", "save the traces of failures"),
}
"""The metavariable and the meaning of each option."""
MARKERS = (
    "fencepost(id): a test case of Fencepost: the id of the requirement, or the name of a batch of random schedules",
    "fencepost_conformance(...): what the decorator fencepost.testing.conformance says",
    "fencepost_schedules(n, seed=0): one more test case for each batch of n random schedules",
)
CASE = "fencepost_case"
_CASE_ID = re.compile(r"[\[-]([A-Z]+-\d\d|schedules-\d+)[\]-]")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options, each also under its name in the configuration file."""
    _keep_assertions(pluginmanager)
    group = parser.getgroup("fencepost", "conformance to the Kafka consumer-group protocol")
    for name, (metavar, text) in TEXTS.items():
        kind: dict[str, Any] = {"metavar": metavar} if metavar else {"action": "store_true", "default": None}
        if name == "only":
            kind["action"] = "append"
        group.addoption(f"--fencepost-{name}", dest=f"fencepost_{name}", help=text, **kind)
        parser.addini(f"fencepost_{name}", text if metavar else f"true: {text}", default="")
    parser.addini("fencepost_inconclusive", "fail (default) or skip where a verdict is undecided", default="")


def _keep_assertions(pluginmanager: pytest.PytestPluginManager) -> None:
    """Have pytest load the kit as any other package.

    pytest rewrites the assertions of all modules that come with a plugin. Of the kit, that takes a second of each first
    session, and of every session where Python writes no bytecode. There is no public way to prevent it.
    """
    getattr(getattr(pluginmanager, "rewrite_hook", None), "_must_rewrite", set[str]()).discard("fencepost")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test case of each requirement and each batch of schedules that a test asks for."""
    if CASE in metafunc.fixturenames:
        from fencepost.conformance.testing.collection import parametrize_cases

        parametrize_cases(metafunc)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tell the session which test cases were selected."""
    if any(CASE in getattr(item, "fixturenames", ()) for item in session.items):
        from fencepost.conformance.testing.session import session_of

        session_of(session.config).select(session.items)


def pytest_report_collectionfinish(items: Sequence[pytest.Item]) -> str | None:
    """The line on the kit at the head of a session that uses it."""
    if any(CASE in getattr(item, "fixturenames", ()) for item in items):
        from fencepost.conformance.testing.session import describe_cases

        return describe_cases(items)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep all test cases of one target in one worker of pytest-xdist where workers take groups."""
    if getattr(config.option, "loadgroup", False):  # which a worker has in the place of "dist"
        for item in items:
            if CASE in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("fencepost"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep all test cases in one worker where pytest-xdist hands out chunks of tests, as `-n` alone has it do."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadScheduling

    class CasesInOneChunk(LoadScheduling):  # type: ignore[misc]
        """Adds to the chunk that has one test case of the kit all others."""

        def _send_tests(self, node: Any, num: int) -> None:
            if any(_is_case(self.collection[each]) for each in self.pending[:num]):
                self.pending.sort(key=lambda each: not _is_case(self.collection[each]))
                num = max(num, sum(_is_case(self.collection[each]) for each in self.pending))
            super()._send_tests(node, num)

    return CasesInOneChunk(config, log)


def _is_case(node_id: str) -> bool:
    """Whether the name of a test is that of a test case of the kit."""
    found = _CASE_ID.search(node_id)
    if found is None:
        return False
    from fencepost.conformance.specification import DEFAULT_SPECIFICATION

    return found[1].startswith("schedules-") or found[1] in DEFAULT_SPECIFICATION.requirements


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the reports of the session, or hand them to the controller of pytest-xdist."""
    if _has_run(session.config):
        from fencepost.conformance.testing.session import session_of

        session_of(session.config).finish()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Take the reports of a worker of pytest-xdist."""
    sent = getattr(node, "workeroutput", {}).get("fencepost")
    if sent:
        from fencepost.conformance.testing.session import session_of

        session_of(node.config).add_sent(sent)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the verdicts by families and the outcome."""
    if _has_run(config):
        from fencepost.conformance.testing.session import session_of

        session_of(config).show(terminalreporter)


def _has_run(config: pytest.Config) -> bool:
    """Whether anything of the kit ran in this session."""
    session = sys.modules.get("fencepost.conformance.testing.session")
    return session is not None and session.has_session(config)


@pytest.fixture(scope="session")
def fencepost_target(request: pytest.FixtureRequest) -> "TestedTarget":
    """What is tested; override it. By default that is `--fencepost-target`."""
    from fencepost.conformance.testing.session import target_of_options

    return target_of_options(request.config)


@pytest.fixture
def fencepost_run(request: pytest.FixtureRequest, fencepost_target: "TestedTarget") -> "RunView":
    """The run on the target: results and the report."""
    from fencepost.conformance.testing.session import session_of

    return session_of(request.config).view(request, fencepost_target)


@pytest.fixture
def fencepost_case(request: pytest.FixtureRequest, fencepost_target: "TestedTarget") -> "Case":
    """A test case: a requirement, or a batch of random schedules. The test is marked with `conformance`."""
    from fencepost.conformance.testing.session import session_of

    return session_of(request.config).case(request, fencepost_target)


@pytest.fixture
def fencepost_schedule(request: pytest.FixtureRequest, fencepost_target: "TestedTarget") -> "GroupSchedule":
    """A schedule to be written step by step and then checked."""
    from fencepost.conformance.testing.session import session_of

    return session_of(request.config).schedule(request, fencepost_target)


@pytest.fixture
def fencepost_coordinator() -> "Iterator[ServedCoordinator]":
    """A coordinator with a broker's other requests on a free port of this machine, for tests of applications."""
    from fencepost.conformance.testing.targets import serve_in_thread

    with serve_in_thread() as served:
        yield served


@pytest.fixture
def fencepost_recorder(tmp_path_factory: pytest.TempPathFactory) -> "Recorder":
    """Records what clients and a cluster say to each other: `with fencepost_recorder(upstream) as recording`."""
    from fencepost.conformance.testing.recording import Recorder

    return Recorder(tmp_path_factory.mktemp("fencepost"))
