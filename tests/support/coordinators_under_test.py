"""Coordinators for the test suites that tests of the pytest plugin write: right, wrong, failing, asynchronous."""

from itertools import count
from typing import Any

from fencepost.adapters.classic.coordinator import Coordinator
from fencepost.adapters.serve.coordination import Request, Response, Topics
from fencepost.conformance.testing.in_memory import Storage
from fencepost.model.settings import Settings
from tests.support.faulty_coordinators import FORGIVING
from tests.support.wrapped_coordinators import WrappedAsyncCoordinator, make_wrapped

__all__ = ["WrappedAsyncCoordinator", "make_failing", "make_forgiving", "make_right", "make_unsteady"]


class FailingCoordinator(Coordinator):
    """Raises an exception when a member leaves."""

    def handle(self, request: Request, now: int) -> list[Response]:
        """As the bundled coordinator, but for LeaveGroup."""
        if request.api == "LeaveGroup":
            raise LookupError("no member here")
        return super().handle(request, now)


def make_right(settings: Settings, topics: Topics, storage: Storage) -> Any:
    """The bundled coordinator."""
    return make_wrapped(settings, topics, storage)


def make_forgiving(settings: Settings, topics: Topics, storage: Storage) -> Any:
    """One that accepts heartbeats of any generation (HB-04)."""
    return make_wrapped(settings, topics, storage, FORGIVING)


def make_failing(settings: Settings, topics: Topics, storage: Storage) -> Any:
    """One that fails with an exception."""
    return make_wrapped(settings, topics, storage, FailingCoordinator)


_made = count()


def make_unsteady(settings: Settings, topics: Topics, storage: Storage) -> Any:
    """The first three accept any generation, all later ones are right: two are made only to be described, so that no
    violation is seen twice."""
    return make_wrapped(settings, topics, storage, FORGIVING if next(_made) < 3 else Coordinator)
