"""An assignor in a program: groups to its standard input, assignments from its standard output, as JSON lines."""

import base64
import json
import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fencepost.adapters.address import TargetError
from fencepost.model.assignors.group import Assignment, ClusterTopics, GroupMember
from fencepost.model.errors import FencepostError

MAX_SECONDS = 10.0
"""How long an assignor may take for one group."""
CHUNK_BYTES = 65_536


class AssignorError(FencepostError):
    """An assignor fails, or its assignment cannot be read; the message is one line."""


def encode_group(number: int, members: Sequence[GroupMember], cluster: ClusterTopics) -> dict[str, Any]:
    """A group as an assignor in a program is told of it."""
    group: dict[str, Any] = {
        "id": number,
        "topics": dict(cluster.partitions),
        "members": [encode_member(member) for member in members],
    }
    if cluster.racks:
        group["racks"] = {topic: [sorted(near) for near in racks] for topic, racks in cluster.racks.items()}
    return group


def encode_member(member: GroupMember) -> dict[str, Any]:
    """A member as an assignor in a program is told of it."""
    subscription = member.subscription
    data = subscription.user_data
    return {
        "id": member.id,
        "instance": member.instance_id,
        "topics": list(subscription.topics),
        "owned": [list(partition) for partition in subscription.owned],
        "generation": subscription.generation,
        "user_data": None if data is None else base64.b64encode(data).decode(),
        "rack": subscription.rack,
    }


def decode_assignment(number: int, line: bytes) -> Assignment:
    """The assignment in a line. Raises `AssignorError`."""
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    match message:
        case {"id": int(found), "assignment": dict(plan)} if found == number:
            with suppress(TypeError, ValueError):
                return {str(id): tuple((str(topic), int(index)) for topic, index in own) for id, own in plan.items()}
        case {"id": int(found), "error": error} if found == number:
            raise AssignorError(f"it fails: {str(error).splitlines()[0] if error else 'no reason given'}")
    raise AssignorError(f"no assignment for group {number}: {line[:80].decode(errors='replace')!r}")


@dataclass(slots=True)
class AssignorProgram:
    """A program with an assignor, started for the first group, and again after it has failed to respond."""

    command: Sequence[str]
    seconds: float = MAX_SECONDS
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)
    _rest: bytes = field(default=b"", init=False)
    _count: int = field(default=0, init=False)

    def assign(self, members: Sequence[GroupMember], cluster: ClusterTopics) -> Assignment:
        """The assignment of the program. Raises `AssignorError`, and `TargetError` if it cannot be run."""
        self._count += 1
        line = json.dumps(encode_group(self._count, members, cluster)).encode() + b"\n"
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(line)
            process.stdin.flush()
        return decode_assignment(self._count, self._read_line(process))

    def close(self) -> None:
        """End the program, with its process group."""
        process, self._process, self._rest = self._process, None, b""
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def _start(self) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise TargetError(f"assignor {shlex.join(self.command)!r}: cannot be run: {error.strerror}") from None

    def _read_line(self, process: "subprocess.Popen[bytes]") -> bytes:
        """The next line of the program. Raises `AssignorError` if it ends, or takes too long; it is ended then."""
        assert process.stdout is not None
        deadline = time.monotonic() + self.seconds
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                self.close()
                raise AssignorError(f"no assignment within {self.seconds:g} s")
            chunk = os.read(process.stdout.fileno(), CHUNK_BYTES)
            if not chunk:
                self.close()
                raise AssignorError("the program ended")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line
