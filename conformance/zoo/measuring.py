"""Measures of runs: limits of processor time for code that may never end, a clock of it, and the lines that run.

A schedule that does not execute the lines that a mutant changes cannot tell it from the shipped coordinator.
"""

import inspect
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, ParamSpec, TypeVar

from fencepost.conformance.zoo.mutants import Mutant, changed_lines, code_of, file_of, source_of
from fencepost.model.protocols import registered_protocols

REPEAT_SECONDS = 1.0
"""The interval of further alarms: an exception raised in a callback of the garbage collector is lost."""
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class CpuLimitExceeded(SystemExit):
    """The limit is exceeded; `in_coordinator` is true if the coordinator was running.

    A `SystemExit`, which neither a coordinator nor an event loop swallows.
    """

    def __init__(self, inside: bool) -> None:
        super().__init__("time is up")
        self.in_coordinator = inside


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """A context that raises `CpuLimitExceeded` after these seconds of processor time; limits may be nested. Only in the
    main thread of a process."""

    def expire(number: int, frame: FrameType | None) -> None:
        raise CpuLimitExceeded(is_in_coordinator(frame))

    bundled_packages()  # so that the handler of the signal imports nothing
    begun = time.process_time()
    handler = signal.signal(signal.SIGPROF, expire)
    outer, _ = signal.setitimer(signal.ITIMER_PROF, seconds, REPEAT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, handler)
        if outer:
            left = outer - (time.process_time() - begun)
            signal.setitimer(signal.ITIMER_PROF, max(left, 0.001), REPEAT_SECONDS)


@cache
def bundled_packages() -> tuple[str, ...]:
    """The packages of bundled coordinators: the folder of each protocol among the adapters."""
    return tuple(f"fencepost.adapters.{name}" for name in registered_protocols())


@cache
def bundled_folders() -> tuple[str, ...]:
    """The folders of `bundled_packages`, as far as there are any."""
    specs = map(find_spec, bundled_packages())
    return tuple(str(Path(spec.origin).parent) for spec in specs if spec is not None and spec.origin is not None)


def is_in_coordinator(frame: FrameType | None) -> bool:
    """A module of a bundled coordinator, or a copy of one, is on the stack."""
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(bundled_packages()):
            return True
        frame = frame.f_back
    return False


class CpuClock:
    """A clock of the seconds of one core that this process would have used without caches."""

    def __init__(self) -> None:
        self._saved = 0.0

    def __call__(self) -> float:
        return time.process_time() + self._saved

    def add_saved(self, seconds: float) -> None:
        """Add seconds that a cache saved."""
        self._saved += seconds

    def run_uncounted(
        self, work: Callable[Parameters, Result], *given: Parameters.args, **named: Parameters.kwargs
    ) -> Result:
        """Call `work`, and do not count the seconds it takes."""
        begun = time.process_time()
        result = work(*given, **named)
        self._saved -= time.process_time() - begun
        return result


Line = tuple[str, int]
"""A file, and the number of a line."""


@contextmanager
def trace_lines(folder: str = "", function: str = "") -> Iterator[set[Line]]:
    """A context that collects the lines that this thread executes of a folder or a file, by default of bundled
    coordinators; with a name those of one function and of what stands inside it alone."""
    found: set[Line] = set()
    folders = folder or bundled_folders()

    def trace_line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            found.add((frame.f_code.co_filename, frame.f_lineno))
        return trace_line

    def trace_call(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        is_meant = not function or code.co_qualname.partition(".")[0] == function
        return trace_line if is_meant and code.co_filename.startswith(folders) else None

    outer = sys.gettrace()
    sys.settrace(trace_call)
    try:
        yield found
    finally:
        sys.settrace(outer)


def lines_changed_by(mutant: Mutant) -> frozenset[Line] | None:
    """The lines that a mutant changes; None if loading the module executes them."""
    file = str(file_of(mutant.module))
    lines = frozenset((file, number) for number in changed_lines(source_of(mutant.module), mutant))
    return None if lines & lines_run_on_load(mutant.module) else lines


@cache
def lines_run_on_load(module: str) -> frozenset[Line]:
    """The lines that loading a module executes: those outside functions."""
    file = str(file_of(module))
    return frozenset((file, number) for number in _module_level_lines(code_of(module)))


def _module_level_lines(code: CodeType) -> Iterator[int]:
    yield from (number for _, _, number in code.co_lines() if number is not None)
    for each in code.co_consts:
        if isinstance(each, CodeType) and not each.co_flags & inspect.CO_OPTIMIZED:
            yield from _module_level_lines(each)
