"""python -m tests.identity [PART ...] [--record]: compare the kit with what is frozen, or freeze it anew.

Returns 1 if anything differs. Two parts are computed at a time.
"""

import argparse
import gzip
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from pathlib import Path
from typing import Any

from tests.identity.parts import PARTS

FROZEN = Path(__file__).parent / "frozen"
SHOWN = 4
"""How many entries of a part that differ are shown whole, the others by name."""
LINES = 30


def compute(part: str) -> tuple[str, dict[str, Any], float]:
    """A part, its entries as JSON has them, and the seconds that they took."""
    begun = time.monotonic()
    entries = json.loads(json.dumps(dict(PARTS[part]())))
    return part, entries, time.monotonic() - begun


def path_of(part: str) -> Path:
    """The file that a part is frozen in."""
    return FROZEN / f"{part}.json.gz"


def freeze(part: str, entries: Mapping[str, Any]) -> None:
    """Write the entries of a part, without a time stamp, so that equal entries give equal files."""
    FROZEN.mkdir(exist_ok=True)
    with path_of(part).open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(json.dumps(entries, sort_keys=True, indent=0).encode())


def differences(frozen: Mapping[str, Any], entries: Mapping[str, Any]) -> list[str]:
    """The names of entries that are gone, new or different."""
    return sorted(name for name in {*frozen, *entries} if frozen.get(name) != entries.get(name))


def lines_of(value: Any) -> list[str]:
    """An entry in lines, for a diff."""
    return value.splitlines() if isinstance(value, str) else json.dumps(value, indent=1, sort_keys=True).splitlines()


def describe(name: str, frozen: Mapping[str, Any], entries: Mapping[str, Any]) -> str:
    """How an entry differs."""
    if name not in entries or name not in frozen:
        return f"  {name}: {'new' if name in entries else 'gone'}"
    diff = list(unified_diff(lines_of(frozen[name]), lines_of(entries[name]), "frozen", "now", n=1, lineterm=""))
    return "\n".join([f"  {name}:", *(f"    {line}" for line in diff[2 : LINES + 2])])


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the parts, or freeze them, and say what differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.identity", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--record", action="store_true", help="freeze what differs")
    given = parser.parse_args(arguments)
    if unknown := sorted({*given.parts} - PARTS.keys()):
        parser.error(f"no part is named {unknown[0]}: write one of {', '.join(PARTS)}")
    is_equal = True
    with ProcessPoolExecutor(2) as pool:
        for part, entries, seconds in pool.map(compute, given.parts or PARTS):
            is_new = not path_of(part).exists()
            frozen = {} if is_new else json.loads(gzip.decompress(path_of(part).read_bytes()))
            differing = differences(frozen, entries)
            is_equal &= not differing
            print(f"{part}: {len(entries)} entries, {len(differing)} differ, {seconds:.0f} s", flush=True)
            if given.record and differing:
                freeze(part, entries)
            elif differing:
                print(*(describe(name, frozen, entries) for name in differing[:SHOWN]), sep="\n")
                if len(differing) > SHOWN:
                    print(f"  and {', '.join(differing[SHOWN:])}"[:2_000])
    return 0 if is_equal or given.record else 1
