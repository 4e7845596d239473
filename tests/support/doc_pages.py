"""The documents as steps of a reader: their code blocks in order, run in a folder of their own."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.readme import fenced_blocks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
DATA = ROOT / "tests" / "traces" / "data"
ADDRESS = "127.0.0.1:9092"
"""The address of the broker in the documents."""
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_EXIT_CODE = re.compile(r"\s+# exit code (\d)$")
_PROGRAMS = {
    "fencepost": f'exec "{sys.executable}" -m fencepost "$@"\n',
    "python": f'exec "{sys.executable}" "$@"\n',
    "python3": f'exec "{sys.executable}" "$@"\n',
    "kafka-dump-log.sh": f'cat "{DATA}/orders/dump-3.9.txt"\n',
}
_BROKER = f'#!/bin/sh\nexec "{sys.executable}" -m tests.support.foreground_broker . calm\n'


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a document: its words, the exit code that it should have, and the lines that its output should have,
    in this order."""

    line: str
    code: int
    shown: tuple[str, ...] = ()


def commands_in(text: str) -> Iterator[Command]:
    """The commands of a document in order. A `text` block tells of the output of the last one before it."""
    last: Command | None = None
    for language, block in _BLOCK.findall(text):
        if language == "text" and last is not None:
            last = Command(last.line, last.code, tuple(filter(None, map(str.strip, block.splitlines()))))
        if language == "sh":
            for line in block.splitlines():
                if last is not None:
                    yield last
                last = command_of(line)
    if last is not None:
        yield last


def command_of(line: str) -> Command:
    """A line of a shell with the exit code that a comment gives."""
    found = _EXIT_CODE.search(line)
    return Command(_EXIT_CODE.sub("", line), int(found[1]) if found else 0)


def prepare_folder(folder: Path, text: str) -> dict[str, str]:
    """Put everything into a folder that documents name, and return the environment for their commands."""
    programs = folder / ".bin"
    programs.mkdir()
    for name, body in _PROGRAMS.items():
        make_program(programs / name, f"#!/bin/sh\n{body}")
    make_program(folder / "my-broker", _BROKER)
    shutil.copy(DOCS / "examples" / "incident" / "server.log", folder)
    shutil.copy(DOCS / "examples" / "clients" / "range_assignor.py", folder)
    for name in ("two-leaders.jsonl", "kafka-restart.jsonl"):
        shutil.copy(DOCS / "examples" / "finding" / name, folder)
    shutil.copy(DATA / "kafka.pcap", folder)
    (folder / "traces").mkdir()
    shutil.copy(DATA / "group.jsonl", folder / "traces")
    shutil.copy(DOCS / "examples" / "clients" / "kafka_python_consumer.py", folder / "consumer.py")
    (folder / "broker-1").mkdir()
    shutil.copy(DATA / "kafka-4-requests.log.gz", folder / "broker-1" / "kafka-request.log.1.gz")
    for number, name in enumerate(("j44.log", "j28.log"), 1):
        shutil.copy(DATA / "orders" / name, folder / f"consumer-{number}.log")
    shutil.copytree(DATA / "orders" / "__consumer_offsets-1", folder / "__consumer_offsets-1")
    (folder / "registry").symlink_to(DOCS / "registry")
    (folder / "make-zipapp").symlink_to(DOCS / "ci" / "make-zipapp")
    for block in fenced_blocks(text, "toml")[:1]:
        (folder / "profile.toml").write_text(block)
    path = os.pathsep.join([str(programs), os.environ["PATH"]])
    return {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": os.pathsep.join([str(ROOT / ".src"), str(ROOT)]),
        "COLUMNS": "100",
    }


def make_program(path: Path, text: str) -> None:
    """Write an executable file."""
    path.write_text(text)
    path.chmod(0o755)


def run_line(line: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line in a shell."""
    command = ["bash", "-c", line]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def missing_lines(shown: Sequence[str], output: str) -> list[str]:
    """The lines that a document shows and the output does not have in this order; `…` stands for anything."""
    lines = iter(output.splitlines())
    wanted = {line: re.compile(".+".join(map(re.escape, line.split("…")))) for line in shown}
    return [line for line in shown if not any(wanted[line].search(found) for found in lines)]
