"""The protocols, by their names: each is registered by one entry point of the group `fencepost.protocols`.

An entry point leads to a `ProtocolEntry`, which says where the parts of the protocol are. A part is imported when it is
first asked for, by whoever needs it: a layer sees its own parts of a protocol, and none of the layers above it.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

GROUP = "fencepost.protocols"
KAFKA = "kafka"
"""The dialect of Apache Kafka, which the default protocol has."""
DEFAULT = "fencepost.model.classic.protocol:CLASSIC"
"""The place of the protocol that is meant where none is named: most commands need not read what is registered."""


@dataclass(frozen=True, slots=True)
class ProtocolEntry:
    """A protocol, with the places of its parts, each written as `module:name`; a part that is empty is not there.

    `name` is what headers of traces, addresses of targets and commands call it.
    """

    name: str
    specifications: Mapping[str, str] = field(default_factory=dict)
    """Each `Specification`, by the subject of its requirements."""
    messages: str = ""
    """A table of messages in the notation of `model/wire/schema`, which no other protocol has."""
    holes: str = ""
    """The holes of the text that it was read from, each a `Hole`, by id."""
    hole_searches: str = ""
    """Makes a `HoleSearch` of each hole, or several."""
    theorems: str = ""
    """The `KernelTheorems`."""
    judge: str = ""
    """Makes the reader of a trace for the judge, a `JudgedProtocol`."""
    history: str = ""
    """The recorder of histories."""
    recordings: str = ""
    """The `RecordingParts`: what recordings show of states, owners and members."""
    words: str = ""
    """The `HistoryWords` for them."""
    coordinator: str = ""
    """The `ServedDialect` of the bundled server: that of the default protocol, or another dialect of it."""
    description: str = ""
    """The `ProtocolDescription` for runs and replays."""
    clients: str = ""
    """The `ClientProtocol` for clients of which only requests are seen."""
    driven_clients: str = ""
    """The `ClientProtocol` for clients with a driver."""
    zoo: str = ""
    """What it adds to the zoo, a `ProtocolZoo`."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """The function that runs `explore`, `prove`, `serve` or `swarm` for it, by the name of the command."""


def load_part(place: str) -> Any:
    """What is at a place, written as `module:name`."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


@cache
def default_protocol() -> ProtocolEntry:
    """The protocol that is meant where none is named."""
    entry: ProtocolEntry = load_part(DEFAULT)
    return entry


@cache
def registered_protocols() -> Mapping[str, ProtocolEntry]:
    """Every protocol by its name, the default one first and the others in the order of their names."""
    first = default_protocol()
    places = {place: None for text, header in _registrations() for place in values_under(header, text)}
    found: Iterable[ProtocolEntry] = map(load_part, places)
    return {first.name: first} | {entry.name: entry for entry in sorted(found, key=lambda entry: entry.name)}


def _registrations() -> Iterator[tuple[str, str]]:
    """The texts that register protocols, each with the header of its section: the `pyproject.toml` of a checkout, which
    may be newer than the metadata of its installation, and the metadata of all distributions.

    `importlib.metadata` reads the same files, and takes longer to be imported than most commands run.
    """
    checkout = Path(__file__).resolve().parents[1] / "pyproject.toml"
    if checkout.exists():
        yield checkout.read_text(encoding="utf-8"), f'[project.entry-points."{GROUP}"]'
    seen: set[str] = set()
    for folder in sys.path:
        try:
            names = os.listdir(folder or os.curdir)
        except OSError:  # a folder that is not there, or an archive
            continue
        for name in sorted(name for name in names if name.endswith((".dist-info", ".egg-info"))):
            distribution = name.partition("-")[0].lower()
            file = os.path.join(folder, name, "entry_points.txt")
            if distribution not in seen and os.path.exists(file):
                yield Path(file).read_text(encoding="utf-8"), f"[{GROUP}]"
            seen.add(distribution)


def values_under(header: str, text: str) -> Iterator[str]:
    """The values of the section with this header in a text of lines `name = value`, with quotes or without."""
    is_inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            is_inside = line == header
        elif is_inside and "=" in line:
            yield line.partition("=")[2].strip().strip('"')


def find_protocol(name: str) -> ProtocolEntry | None:
    """The protocol of this name; None if there is none."""
    first = default_protocol()
    return first if name == first.name else registered_protocols().get(name)


def protocols_with(part: Callable[[ProtocolEntry], str]) -> dict[str, str]:
    """The place of a part by the name of each protocol that has it."""
    places = {name: part(entry) for name, entry in registered_protocols().items()}
    return {name: place for name, place in places.items() if place}
