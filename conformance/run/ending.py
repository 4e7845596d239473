"""How a run ends: when everything was played, or early, and then with the reason in its report."""

import asyncio
import time
import traceback
from collections.abc import Collection, Coroutine
from dataclasses import dataclass
from typing import Any

from fencepost.adapters.target import TargetError
from fencepost.conformance.execution.crash_monitor import TargetGone
from fencepost.conformance.results import Ending, EndKind
from fencepost.model.errors import FencepostError


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Why a run is cancelled: the message of `asyncio.Task.cancel`."""

    kind: EndKind
    reason: str


INTERRUPTED = StopRequest(EndKind.INTERRUPTED, "interrupted")


class RunLimits:
    """The clock of a run and what ends it early: `seconds` after its start (None: no limit), and `stop`."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = seconds
        self.started_at = time.monotonic()
        self.request: StopRequest | None = None
        self.timeout: asyncio.Timeout | None = None

    def elapsed_seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started_at

    def share(self, parts: int) -> float | None:
        """The seconds for one of so many parts of what is left; None without a limit."""
        return None if self.seconds is None else max(self.seconds - self.elapsed_seconds(), 0.0) / parts

    def stop(self, reason: str) -> None:
        """End the run: what is being played is cancelled."""
        self.request = StopRequest(EndKind.STOPPED, reason)
        if self.timeout is not None:
            self.timeout.reschedule(asyncio.get_running_loop().time())

    async def play(self, playing: Coroutine[Any, Any, None], current: "CurrentWork") -> Ending | None:
        """Play, and return how it ended early, None if it did not. Never raises an `Exception`: whatever happens, what
        was judged until then is reported."""
        self.timeout = asyncio.timeout(self.share(1))
        try:
            async with self.timeout:
                await playing
        except asyncio.CancelledError as error:
            request = error.args[0] if error.args and isinstance(error.args[0], StopRequest) else INTERRUPTED
            return self.ending(request, current.describe())
        except TargetGone as gone:
            return self.target_down(gone, current)
        except TargetError as error:
            return self.ending(StopRequest(EndKind.TARGET_DOWN, str(error)), current.describe())
        except Exception as error:
            if self.timeout.expired():
                time_limit = StopRequest(EndKind.STOPPED, f"the time is up: --seconds {self.seconds or 0:g}")
                return self.ending(self.request or time_limit, current.describe())
            return self.harness_failed(error, current)
        return None

    def ending(self, request: StopRequest, during: str) -> Ending:
        """The end of the run at this moment."""
        return Ending(request.kind, request.reason, round(self.elapsed_seconds(), 3), during)

    def target_down(self, gone: TargetGone, current: "CurrentWork") -> Ending:
        """The end of the run when the target went down, which was at the first loss of a connection."""
        offset = self.elapsed_seconds() - asyncio.get_running_loop().time()
        lost_at = gone.losses[0].lost_at + offset if gone.losses else self.elapsed_seconds()
        during = name_some([each.scenario for each in gone.losses]) or current.describe()
        last_sign = None if gone.last_sign is None else round(max(gone.last_sign + offset, 0.0), 3)
        return Ending(EndKind.TARGET_DOWN, str(gone), round(max(lost_at, 0.0), 3), during, last_sign)

    def harness_failed(self, error: Exception, current: "CurrentWork") -> Ending:
        """The end of the run by an error that is not the target's."""
        if isinstance(error, OSError) and error.filename is not None:
            reason, detail = f"cannot write {error.filename}: {error.strerror}", ""
        elif isinstance(error, FencepostError):
            reason, detail = str(error), ""
        else:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            reason, detail = f"an error in Fencepost itself: {told}", "".join(traceback.format_exception(error))
        return Ending(
            EndKind.HARNESS_FAILED, reason, round(self.elapsed_seconds(), 3), current.describe(), detail=detail
        )


class CurrentWork:
    """What is being played: the names of scenarios, or a `stage` in words where there are none."""

    def __init__(self) -> None:
        self.playing: set[str] = set()
        self.stage = ""

    def describe(self) -> str:
        """The work in a few words, "" if there is none."""
        return name_some(sorted(self.playing)) or self.stage


def name_some(names: Collection[str]) -> str:
    """The first of some names, and how many more there are."""
    first = next(iter(names), "")
    return f"{first} and {len(names) - 1} more" if len(names) > 1 else first
