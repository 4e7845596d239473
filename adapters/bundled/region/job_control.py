"""The job control plane: control variables, and the bean of the group that merges checkpoints."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fencepost.adapters.bundled.region.kafka_port import Offsets, Partition


class WrongRegion(Exception):
    """The operator is in another region than its group."""


@dataclass(frozen=True, slots=True)
class OperatorPart:
    """An operator's part of a checkpoint: the offsets of what it is assigned over the map that it seeks by (H01)."""

    name: str
    names: frozenset[str]
    offsets: Offsets
    base: Offsets


Contribution = tuple[int, OperatorPart]
"""The number of a checkpoint, and an operator's part of it."""


def merge_parts(parts: Iterable[OperatorPart]) -> Offsets:
    """The union: what was assigned over the maps below, the highest offset where several have one."""
    below: Offsets = {}
    above: Offsets = {}
    for part in parts:
        for target, offsets in ((below, part.base), (above, part.offsets)):
            for partition, offset in offsets.items():
                target[partition] = max(offset, target.get(partition, 0))
    return below | above


def bean_name(group: str) -> str:
    """The name of a group's bean: the id itself, for a hash may be that of another one too (H17)."""
    return group


@dataclass(eq=False, slots=True)
class ControlPlane:
    """The beans of all groups, by name."""

    beans: dict[str, "JobControl"] = field(default_factory=dict)

    def bean(self, group: str, names: frozenset[str]) -> "JobControl":
        """The bean of a group, which is made for the first who asks; the names of its operators are in it."""
        found = self.beans.setdefault(bean_name(group), JobControl(frozenset()))
        found.names |= names
        return found


@dataclass(eq=False, slots=True)
class JobControl:
    """The variables are stored; the bean is not, and is empty after a restart. The job's names are fixed (H02)."""

    names: frozenset[str]
    variables: Offsets = field(default_factory=dict)
    """The first offset that the group has sought, by partition."""
    restarts: int = 0
    region: int | None = None
    """The index of the group's region, once an operator has connected."""
    _connected: dict[str, Callable[[], Contribution | None]] = field(default_factory=dict)
    """What each live operator has contributed to the reset that was its last."""
    _parts: dict[int, dict[str, OperatorPart]] = field(default_factory=dict)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def connect(self, name: str, region: int, recall: Callable[[], Contribution | None]) -> None:
        """Connect an operator; `recall` returns its last contribution. Raises `WrongRegion`."""
        if self.region not in (None, region):
            raise WrongRegion(f"operator {name} is in region {region}, and its group in region {self.region}")
        self.region = region
        self._connected[name] = recall

    def disconnect(self, name: str) -> None:
        """Disconnect an operator that is gone."""
        self._connected.pop(name, None)

    def first_offset(self, partition: Partition, start: int) -> int:
        """The control variable, made with this value if there is none: in one step (H08)."""
        return self.variables.setdefault(partition, start)

    def contribute(self, checkpoint: int, part: OperatorPart) -> None:
        """Add a part to the merge of a checkpoint, once for each operator."""
        self._parts.setdefault(checkpoint, {}).setdefault(part.name, part)

    def merge_if_complete(self, checkpoint: int) -> Offsets | None:
        """The merged map if all operators of the job have contributed; at once when it is asked for again (H06)."""
        parts = self._parts.get(checkpoint, {})
        return merge_parts(parts.values()) if parts.keys() == self.names else None

    async def merge(self, checkpoint: int, part: OperatorPart) -> Offsets:
        """Contribute, and wait until all operators of the job have, as long as the caller lets it (H16)."""
        async with self._news:
            self.contribute(checkpoint, part)
            self._news.notify_all()
            while (found := self.merge_if_complete(checkpoint)) is None:
                await self._news.wait()
            return found

    def retire(self, checkpoint: int) -> None:
        """Forget the merges of this checkpoint and of older ones."""
        self._parts = {one: parts for one, parts in self._parts.items() if one > checkpoint}

    async def restart(self) -> None:
        """The control plane restarts: merges are lost, and all contribute again (H11), those too that have been reset:
        others may wait for them."""
        async with self._news:
            self.restarts += 1
            self._parts = {}
            for recall in self._connected.values():
                contribution = recall()
                if contribution is not None:
                    self.contribute(*contribution)
            self._news.notify_all()
