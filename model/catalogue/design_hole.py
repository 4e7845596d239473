"""The class of the holes of a design."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DesignHole:
    """A hole: what is wrong in the design, where, the weakest repair, and the requirements that it breaks."""

    id: str
    title: str
    sentence: str
    source: str
    repair: str
    requirements: tuple[str, ...]
