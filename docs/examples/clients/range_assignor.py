"""The assignor `range` as a program: `fencepost test-assignor range -- python range_assignor.py`."""

import json
import sys
from typing import Any


def assign(group: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """Each topic in blocks to its subscribers: static members first, by instance, then the others by id."""
    members = sorted(group["members"], key=lambda each: (each["instance"] is None, each["instance"] or each["id"]))
    plan: dict[str, list[list[Any]]] = {member["id"]: [] for member in members}
    for topic, count in sorted(group["topics"].items()):
        subscribers = [member["id"] for member in members if topic in member["topics"]]
        if not subscribers:
            continue
        size, extra = divmod(count, len(subscribers))
        first = 0
        for place, member in enumerate(subscribers):
            last = first + size + (place < extra)
            plan[member] += [[topic, number] for number in range(first, last)]
            first = last
    return plan


for line in sys.stdin:
    group = json.loads(line)
    print(json.dumps({"id": group["id"], "assignment": assign(group)}), flush=True)
