"""The constructors `must`, `should` and `may` of a client's requirements, and the needs of their tests."""

from collections.abc import Mapping
from types import MappingProxyType

from fencepost.model.catalogue.requirement import Level, Requirement, Verifiability

CLIENT_CAPABILITIES: Mapping[str, str] = MappingProxyType(
    {
        "driver": "a driver that tells callbacks, returned records and errors of the client, and makes it poll",
        "restart": "a client that can be ended and started again",
        "static-membership": "a client that takes a group.instance.id",
        "cooperative": "a client with a cooperative assignor",
        "poll-interval": "a client with a poll interval",
        "auto-commit": "a client with auto-commit",
        "manual-assignment": "a client whose application can assign partitions",
        "pattern": "a client that can subscribe to a pattern",
        "assignor": "an assignor, in a client or as a function",
        "range": "an assignor named range",
        "roundrobin": "an assignor named roundrobin",
        "sticky": "an assignor named sticky",
        "cooperative-sticky": "an assignor named cooperative-sticky",
        "racks": "an assignor that knows racks",
    }
)
"""Everything in the `needs` of a client's requirements, in words that fit after "needs"."""


def must(
    id: str,
    title: str,
    sentence: str,
    source: str,
    *,
    incidental: bool = False,
    needs: tuple[str, ...] = (),
    untestable: str = "",
) -> Requirement:
    """A requirement without which a group breaks, or a promise of the documentation. `untestable` says why it cannot be
    seen to be broken, if that is so."""
    testability = Verifiability.UNTESTABLE if untestable else testability_of(incidental, needs)
    return Requirement(id, Level.MUST, title, sentence, source, testability, needs, untestable)


def should(
    id: str, title: str, sentence: str, source: str, *, needs: tuple[str, ...] = (), untestable: str = ""
) -> Requirement:
    """A requirement that a group can live without. `untestable` is as that of `must`."""
    testability = Verifiability.UNTESTABLE if untestable else testability_of(False, needs)
    return Requirement(id, Level.SHOULD, title, sentence, source, testability, needs, untestable)


def may(
    id: str, title: str, sentence: str, source: str, *, needs: tuple[str, ...] = (), untestable: str = ""
) -> Requirement:
    """A permission. `untestable` is as that of `must`."""
    testability = Verifiability.UNTESTABLE if untestable else testability_of(False, needs)
    return Requirement(id, Level.MAY, title, sentence, source, testability, needs, untestable)


def testability_of(incidental: bool, needs: tuple[str, ...]) -> Verifiability:
    """How a requirement can be seen to hold or fail from outside."""
    if incidental:
        return Verifiability.INCIDENTAL
    return Verifiability.RESTART if "restart" in needs else Verifiability.CHECKED
