"""How long a leader takes from its plan to the assignments of SyncGroup.

Run with `python -m tests.benchmarks.leader_plan --members 200 400 800`, with as many partitions as members. Each member
claims one partition, and the plan gives each to the next member, so that all are withheld.

Measured once each, loaded: 100 members 0.005 s, 200 members 0.020 s, 400 members 0.073 s. When the claims were searched
again for each member: 50 members 0.022 s, 100 members 0.169 s, 200 members 1.258 s.
"""

import argparse
import time
from collections.abc import Sequence

from fencepost.model.classic.core.state import MemberView
from fencepost.model.classic.member.member import assignments
from fencepost.model.sorts import MemberId


def seconds_of(members: int) -> float:
    """The seconds of a processor for a group of this size."""
    ids = [MemberId(f"member-{number}") for number in range(members)]
    views = tuple(
        MemberView(id, None, tuple(number == place for number in range(members))) for place, id in enumerate(ids)
    )
    plan = (*ids[1:], ids[0])
    begun = time.process_time()
    given = assignments(views, plan)
    took = time.process_time() - begun
    assert not any(any(flags or ()) for _, flags in given)
    return took


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--members", type=int, nargs="+", default=[50, 100, 200])
    for members in parser.parse_args(arguments).members:
        print(f"{members} members, {members} partitions: {seconds_of(members):.3f} s")


if __name__ == "__main__":
    main()
