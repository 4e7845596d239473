"""Whether a fault changes anything, and is out again afterwards."""

from typing import Any

from fencepost.conformance.zoo.fault import Fault, Patch


class RecordingPatch(Patch):
    """A patch that keeps what it replaces: the owner, the name and what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[tuple[Any, str, Any]] = []

    def replace(self, owner: object, name: str, value: Any) -> None:
        self.replaced.append((owner, name, getattr(owner, name)))
        super().replace(owner, name, value)


def assert_put_in_and_taken_out(fault: Fault[Any]) -> None:
    """Fail unless the fault replaces something, and what was there before is there again."""
    with RecordingPatch() as patch:
        fault.apply(patch)
        assert patch.replaced
        assert all(getattr(owner, name) is not before for owner, name, before in patch.replaced)
    assert all(getattr(owner, name) == before for owner, name, before in patch.replaced)
