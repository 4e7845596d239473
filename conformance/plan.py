"""The options of a run, the result of a replay, and the interface of the runner behind the command line."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from fencepost.conformance.events import Progress, RunEvent
from fencepost.conformance.results import Failure, Report, Scope
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.model.catalogue.specification import Specification
from fencepost.traces.history.builder import TraceHistory

BUNDLED = "bundled"
"""The target that needs no address."""
DEFAULT_SHRINK_SECONDS = 60.0
"""How long all failing schedules of a run are shrunk together."""
DEFAULT_SCHEDULES, DEFAULT_REMOTE_SCHEDULES = 60, 20
"""How many random schedules a full run plays: on a target in this process, and over the network."""


def default_schedules(*, remote: bool, smoke: bool, patterns: Collection[str]) -> int:
    """How many random schedules a run plays that does not say: none if it is for some requirements or scenarios."""
    if smoke or patterns:
        return 0
    return DEFAULT_REMOTE_SCHEDULES if remote else DEFAULT_SCHEDULES


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a run.

    `target` is "bundled" or "kafka://host:port", or "" for the one that the profile starts; `patterns` select
    requirements, all of them if empty; `smoke` asks for the quickest run that means something, `slow` for the tests
    that wait out the fixed 300 s timer too; `intrusive` permits requests that a faulty broker may carry out on groups
    of others;
    `tours` is how many transition tours are played besides the scenarios, and `schedules` how many random schedules
    after them, both drawn by `seed`;
    `save` gets the traces of failures and `traces` every trace. Both folders exist.
    `excluded` are patterns of requirements that are left out. The run ends after `max_failures` failed requirements, or
    `seconds` after its start; shrinking takes `shrink_seconds` in all (None for any of them: no limit).
    """

    target: str
    patterns: tuple[str, ...] = ()
    smoke: bool = False
    slow: bool = False
    seed: int = 0
    profile: Path | None = None
    tours: int = 0
    schedules: int = 0
    save: Path | None = None
    traces: Path | None = None
    excluded: tuple[str, ...] = ()
    max_failures: int | None = None
    seconds: float | None = None
    shrink_seconds: float | None = DEFAULT_SHRINK_SECONDS
    intrusive: bool = False
    program: tuple[str, ...] = ("fencepost",)
    """The words that start Fencepost, for commands to copy."""

    @property
    def default_schedules(self) -> int:
        """How many random schedules the command line plays for this plan unless it says how many."""
        return default_schedules(remote=self.target != BUNDLED, smoke=self.smoke, patterns=self.patterns)

    @property
    def scope(self) -> Scope:
        """How much of the catalogue the run sets out to exercise."""
        return Scope.SMOKE if self.smoke else Scope.SELECTED if self.patterns else Scope.FULL


class ReplayOutcome(StrEnum):
    """Whether a recorded failure is fixed."""

    FIXED = "FIXED"
    """Nothing is violated."""
    STILL_FAILS = "STILL FAILS"
    DIFFERENT = "DIFFERENT"
    """The recorded failure did not come again, and something is violated."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """Nothing failed, and the replay did not get far enough to be sure."""


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The outcome of a replay: with the id of the violated requirement and its failure if something failed, with a
    `note` that gives the reason if it is inconclusive. The `specification` has the requirement. `others` are the
    requirements that the replay violates beside it, `gone` those that the trace was saved for and that hold now."""

    outcome: ReplayOutcome
    requirement: str = ""
    failure: Failure | None = None
    note: str = ""
    specification: Specification = field(default=DEFAULT_SPECIFICATION, repr=False)
    others: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    stays: tuple[str, ...] = ()
    """What the replay created on the target and could not remove."""


class Runner(Protocol):
    """The runner behind the command line: the module `fencepost.conformance.run.runner`.

    `TargetError`, `TraceError`, `ProfileError` and `UnknownRequirement` tell of mistakes that a person can mend.
    """

    async def run(self, plan: Plan, *consumers: Callable[[RunEvent], None]) -> Report:
        """Test a target, and hand the events of the run to the consumers. When cancelled, return what was judged so
        far, with `cut_short` set."""
        ...

    async def replay(self, trace: Path, target: str, profile: Path | None) -> ReplayResult:
        """Drive the schedule of a trace against a target and judge the responses."""
        ...

    def judge_files(
        self,
        paths: Sequence[Path],
        progress: Callable[[Progress], None],
        histories: list[TraceHistory] | None = None,
        jobs: int = 1,
    ) -> Report:
        """Judge recorded traces in `jobs` processes; `histories` gets the history of each group. When interrupted,
        return what was judged so far, with `cut_short` set."""
        ...

    async def serve(
        self,
        host: str,
        port: int,
        storage: Path | None,
        announce: Callable[[str], None],
        slowness: int = 0,
        nodes: int = 1,
        dialect: str = "kafka",
    ) -> None:
        """Serve the bundled coordinator until cancelled; `announce` gets the bootstrap address once it listens.

        Port 0 picks a free port; without `storage` nothing outlives the server; storing takes `slowness` ms
        longer; each of `nodes` has a port of its own. Raises `OSError` if it cannot listen.
        """
        ...
