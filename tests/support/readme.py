"""The README's code blocks and commands."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def fenced_blocks(text: str, language: str) -> list[str]:
    """The contents of the fenced blocks of `text` that are marked with `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


README = (ROOT / "README.md").read_text()
COMMANDS = [
    command for block in fenced_blocks(README, "sh") for line in block.splitlines() for command in line.split(" && ")
]
"""Every command in its `sh` blocks, in order."""
