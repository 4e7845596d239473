"""The theorems about the lease: invariants of every state, and of every step from one state to the next."""

from fencepost.model.logic import Truth, absent, not_, or_
from fencepost.model.statement import statement
from tests.support.lease.protocol import Lease


@statement("fence-granted", "No accepted write carries a larger token than the last one granted.")
def fence_granted(lease: Lease) -> Truth:
    return lease.fence <= lease.token


@statement("one-holder", "A client holds the lease until it expires.")
def one_holder(before: Lease, after: Lease) -> Truth:
    return or_(absent(before.holder), absent(after.holder), before.holder == after.holder)


@statement("tokens-grow", "A client that gets the lease gets a larger token than every client before it.")
def tokens_grow(before: Lease, after: Lease) -> Truth:
    return or_(absent(after.holder), not_(absent(before.holder)), after.token > before.token)


@statement("fence-grows", "No write is accepted after a write with a larger token.")
def fence_grows(before: Lease, after: Lease) -> Truth:
    return after.fence >= before.fence


STEP_STATEMENTS = (one_holder, tokens_grow, fence_grows)
