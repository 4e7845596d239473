"""What is wrong in the text of a protocol."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hole:
    """A hole in a text: what is wrong, where, the weakest repair, and the requirements that it breaks."""

    id: str
    title: str
    sentence: str
    source: str
    repair: str
    requirements: tuple[str, ...]
