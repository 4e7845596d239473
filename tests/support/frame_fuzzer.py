"""Mutated frames without end, and a server in a process of its own that has to bear them."""

import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from fencepost.adapters.serve.record_apis import OFFERED_VERSIONS
from fencepost.model.wire import codec
from fencepost.model.wire.schema import SCHEMAS, Field

SERVE_COMMAND = (sys.executable, "-m", "fencepost", "serve", "--port", "0")
RESPONSE_TIMEOUT_S = 20.0
"""A server that says nothing for so long hangs."""
FRAMES_PER_CONNECTION = 4
"""How many frames a connection carries, unless it is closed before."""
MAX_LOG_LINES = 40

WORDS = ("g", "h", "", "fencepost", "consumer", "range", "classic", "Stable", "m", "x" * 300)
NUMBERS = (0, 1, 2, 3, -1, 500, 6_000, 2**31 - 1)


def random_value(one: Field, chance: random.Random) -> Any:
    """Something that a field may hold."""
    if one.kind in ("int8", "int16", "int32", "int64"):
        bits = int(one.kind[3:])
        return max(-(2 ** (bits - 1)), min(chance.choice(NUMBERS), 2 ** (bits - 1) - 1))
    if one.kind == "string":
        return chance.choice(WORDS)
    if one.kind in ("bytes", "records"):
        return chance.randbytes(chance.choice((0, 1, 70)))
    return chance.random() < 0.5 if one.kind in ("bool", "boolean") else one.default


def random_body(fields: tuple[Field, ...], version: int, chance: random.Random) -> dict[str, Any]:
    """A body with something in most of its fields."""
    found: dict[str, Any] = {}
    for one in fields:
        if version not in one.versions or (one.kind != "struct" and chance.random() < 0.2):
            continue
        if one.kind == "struct":
            if one.array:
                found[one.name] = [random_body(one.fields, version, chance) for _ in range(chance.randint(0, 3))]
        elif one.array:
            found[one.name] = [random_value(one, chance) for _ in range(chance.randint(0, 3))]
        else:
            found[one.name] = random_value(one, chance)
    return {name: each for name, each in found.items() if each is not None}


def mutate(data: bytes, chance: random.Random) -> bytes:
    """`data` after some bytes were flipped, dropped, put in or repeated."""
    raw = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(raw) + 1)
        match chance.randrange(8):
            case 0 | 1 | 2:
                raw[place : place + 1] = bytes([chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))])
            case 3:
                raw[place : place + 4] = chance.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\xff\xff"))
            case 4:
                del raw[place : place + chance.randint(1, 8)]
            case 5:
                raw[place:place] = chance.randbytes(chance.randint(1, 8))
            case 6:
                raw[place:place] = raw[place : place + 16] * chance.randint(1, 4)
            case _:
                del raw[place:]
    return bytes(raw)


def mutated_requests(seed: int) -> Iterator[bytes]:
    """Requests of every kind that a server offers, each changed a little: in the body, or anywhere."""
    chance = random.Random(seed)
    offered = sorted(OFFERED_VERSIONS.items())
    while True:
        api, (low, high) = chance.choice(offered)
        version = chance.randint(low, high)
        body = codec.fit_body(f"{api}Request", version, random_body(SCHEMAS[f"{api}Request"].fields, version, chance))
        frame = codec.encode_request(api, version, chance.randrange(1 << 31), chance.choice(("me", None)), body)
        spared = chance.choice((0, 8, 12))
        yield frame[:spared] + mutate(frame[spared:], chance)


def mutated_responses(seed: int) -> Iterator[tuple[str, int, bytes]]:
    """Answers of every kind, changed alike, with the API and version they are read as."""
    chance = random.Random(seed)
    while True:
        api = chance.choice(sorted(codec.VERSIONS))
        version = chance.randint(*codec.VERSIONS[api])
        name = f"{api}Response"
        body = codec.fit_body(name, version, random_body(SCHEMAS[name].fields, version, chance))
        yield api, version, mutate(codec.encode_response(api, version, 1, body), chance)


@dataclass(slots=True)
class FuzzResult:
    """What became of a server under mutated frames. Sizes in MiB; `answered` and `refused` count frames."""

    answered: int = 0
    refused: int = 0
    initial_mib: float = 0.0
    peak_mib: float = 0.0
    slowest_seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def frames(self) -> int:
        """How many frames the server looked at."""
        return self.answered + self.refused


class ServerProcess:
    """A server in a process of its own, on loopback."""

    def __init__(self, command: Sequence[str] = SERVE_COMMAND) -> None:
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])
        self.log: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self.errors = 0
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def read_log(self) -> None:
        """Count the errors that it tells of."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.rstrip())
            self.errors += line.startswith("Traceback")

    def memory_mib(self) -> float:
        """How much memory it has, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0

    def exchange_frames(self, some: Sequence[bytes]) -> bytes:
        """Everything it says to these frames until it hangs up. Raises `OSError`."""
        with socket.create_connection(("127.0.0.1", self.port), RESPONSE_TIMEOUT_S) as peer:
            said = bytearray()
            try:
                peer.sendall(b"".join(len(frame).to_bytes(4) + frame for frame in some))
                peer.shutdown(socket.SHUT_WR)
                while data := peer.recv(1 << 16):
                    said += data
            except ConnectionError:  # it hung up while something was still on its way to it
                pass
            return bytes(said)

    def close(self) -> None:
        """End it."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()


def count_frames(said: bytes) -> int:
    """How many whole answers that is."""
    count = place = 0
    while place + 4 <= len(said):
        place += 4 + int.from_bytes(said[place : place + 4])
        count += place <= len(said)
    return count


def fuzz_server(seed: int, count: int, command: Sequence[str] = SERVE_COMMAND) -> FuzzResult:
    """Send frames until the server has looked at so many, or is in trouble."""
    house, storm = ServerProcess(command), FuzzResult()
    left: deque[bytes] = deque()
    source = mutated_requests(seed)
    try:
        storm.initial_mib = storm.peak_mib = house.memory_mib()
        while storm.frames < count and not storm.problems:
            left.extend(islice(source, FRAMES_PER_CONNECTION - len(left)))
            begun = time.monotonic()
            try:
                heard = min(count_frames(house.exchange_frames(tuple(left))), len(left))
            except TimeoutError:
                storm.problems.append(f"no answer within {RESPONSE_TIMEOUT_S:g} s to {left[0].hex()}")
                break
            except OSError as error:
                storm.problems.append(f"it cannot be reached any more: {error}")
                break
            storm.slowest_seconds = max(storm.slowest_seconds, time.monotonic() - begun)
            storm.answered += heard
            storm.refused += heard < len(left)
            for _ in range(min(heard + 1, len(left))):
                left.popleft()
            if storm.frames % 97 < FRAMES_PER_CONNECTION:
                storm.peak_mib = max(storm.peak_mib, house.memory_mib())
            if house.errors:
                storm.problems.append("an error of its own: " + " / ".join(house.log))
        if house.process.poll() is not None:
            storm.problems.append(f"it ended with {house.process.returncode}: {' / '.join(house.log)}")
    finally:
        house.close()
    return storm


def fuzz_codec(seed: int, count: int) -> None:
    """Have the codec read so many mutated requests and answers. Raises whatever it raises."""
    for frame in islice(mutated_requests(seed), count // 2):
        codec.decode_request(frame, 50_000)
    for api, version, frame in islice(mutated_responses(seed), count - count // 2):
        codec.decode_response(api, version, frame)
