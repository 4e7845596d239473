"""The command of a profile that has another node coordinate a group."""

from dataclasses import dataclass
from pathlib import Path

from fencepost.adapters.wire.process_control import name_command, run_command

GROUP_PLACE = "{group}"
"""What stands for the group in the words of the command."""


@dataclass(frozen=True, slots=True)
class MoveCommand:
    """A command, run in `folder`, with `timeout` seconds to finish.

    When it ends, another node coordinates the group, and the old one is up.
    """

    arguments: tuple[str, ...]
    folder: Path = Path()
    timeout: float = 180.0

    async def run(self, group: str) -> None:
        """Move the group. Raises `TargetError` if the command fails."""
        arguments = tuple(word.replace(GROUP_PLACE, group) for word in self.arguments)
        await run_command(name_command("move", arguments), arguments, self.folder, self.timeout)
