"""The run behind test cases on a broker: everything that the session asks for is played at once."""

import hashlib
import tempfile
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fencepost.conformance.api.running import iterate_in_thread
from fencepost.conformance.events import RunEvent, RunFinished, ScheduleShrunk
from fencepost.conformance.plan import Plan
from fencepost.conformance.profile import Profile
from fencepost.conformance.results import Ending, Report, RequirementResult
from fencepost.conformance.run.remote import RemoteRun
from fencepost.conformance.run.stream import TraceSaver, stream_events
from fencepost.conformance.specification import DEFAULT_SPECIFICATION
from fencepost.conformance.testing.runs import Finding, RunChoices
from fencepost.model.errors import FencepostError
from fencepost.traces.verdict import UNCLASSIFIED


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker to be tested over TCP; made by `broker`."""

    address: str
    profile: Profile
    profile_path: Path | None = None

    @property
    def name(self) -> str:
        """What it is called before it was asked."""
        return self.address or " ".join(self.profile.start)


class BrokerRun:
    """A run over TCP: one for the whole session, at the first result that is asked for.

    `requirements` are those that are played, and `schedules` random ones after them.
    """

    def __init__(self, broker: Broker, choices: RunChoices, requirements: Sequence[str], schedules: int) -> None:
        self.broker = broker
        self.choices = choices
        self.requirements = tuple(requirements)
        self.schedules = schedules
        self.shrunk: list[ScheduleShrunk] = []
        self._report: Report | None = None
        self._unusable: FencepostError | None = None

    def whole_report(self) -> Report:
        """The report of the run, which is made now if it was not. Raises `TargetError`, each time."""
        if self._unusable is not None:
            raise self._unusable
        if self._report is None:
            try:
                with hold_lock(self.broker):
                    self._report = self.play()
            except FencepostError as error:
                self._unusable = error
                raise
        return self._report

    def play(self) -> Report:
        """Play everything. Raises `TargetError` if the broker cannot be used."""
        is_full = set(self.requirements) == set(DEFAULT_SPECIFICATION.requirements)
        plan = Plan(
            self.broker.address,
            () if is_full else self.requirements,
            smoke=self.choices.smoke,
            seed=self.choices.seed,
            profile=self.broker.profile_path,
            schedules=self.schedules,
            save=self.choices.save,
        )
        chosen = [DEFAULT_SPECIFICATION.requirements[id] for id in self.requirements]
        saver = TraceSaver(plan.save)

        def start() -> AsyncGenerator[RunEvent, None]:
            run = RemoteRun(plan, self.broker.profile)
            return stream_events(partial(run.run, chosen), saver)

        report: Report | None = None
        with closing(iterate_in_thread(start)) as events:
            for event in events:
                if isinstance(event, ScheduleShrunk) and event.confirmed:
                    self.shrunk.append(event)
                if isinstance(event, RunFinished):
                    report = event.report
        assert report is not None, "a run ends with its report or raises"
        return report

    def result(self, id: str) -> RequirementResult:
        """As `SessionRun.result`."""
        return self.whole_report().result(id)

    def findings_beside(self, id: str) -> tuple[Finding, ...]:
        """As `SessionRun.findings_beside`: the first test case reports what no requirement speaks of."""
        report = self.whole_report()
        if id != self.requirements[0]:
            return ()
        return tuple(Finding(UNCLASSIFIED, failure) for failure in report.unclassified)

    def doubt_beside(self, id: str) -> str:
        """As `SessionRun.doubt_beside`: what the broker did while it was idle."""
        findings = self.whole_report().idle_findings
        return f"while idle: {findings[0]}" if findings and id == self.requirements[0] else ""

    def failed_ids(self) -> frozenset[str]:
        """As `SessionRun.failed_ids`."""
        return frozenset(result.id for result in self.whole_report().failed_results())

    def exceptions(self) -> list[str]:
        """As `SessionRun.exceptions`: none in this process."""
        return []

    @property
    def ended(self) -> Ending | None:
        """As `SessionRun.ended`."""
        return self.whole_report().ended

    def run_batch(self, batch: int, size: int, seed: int) -> tuple[Finding, ...]:
        """As `SessionRun.run_batch`: what the run found with the schedules of the batch."""
        report = self.whole_report()
        shown = {event.requirement for event in self.shrunk if batch_of(event.name) == batch}
        failed = [each for each in report.failed_results() if each.id in shown]
        return tuple(Finding(each.id, each.failures_by_length()[0]) for each in failed)

    def report(self) -> Report | None:
        """As `SessionRun.report`."""
        return self._report


def batch_of(name: str) -> int:
    """The batch of a random schedule by its name, which is `schedule-SEED-BATCH-NUMBER` and maybe a requirement."""
    return int(name.split("-")[2])


@contextmanager
def hold_lock(broker: Broker) -> Iterator[None]:
    """Keep other processes of this machine from testing the same broker at the same time, where files can be locked."""
    name = hashlib.sha256(repr((broker.address, broker.profile.start)).encode()).hexdigest()[:16]
    with (Path(tempfile.gettempdir()) / f"fencepost-{name}.lock").open("a") as file:
        with suppress(ImportError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
