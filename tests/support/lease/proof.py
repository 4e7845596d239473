"""The lease's events for the proof by induction: any client sends any token that was granted, at any time."""

from fencepost.model.logic import Time
from fencepost.model.proofs.induction import HandlerEvent
from tests.support.lease.protocol import Acquire, Renew, Write, acquire, expire, renew, write
from tests.support.lease.theorems import STEP_STATEMENTS, fence_granted

STATEMENTS = (fence_granted, *STEP_STATEMENTS)
ACQUIRE = HandlerEvent("acquire", acquire, (Acquire, Time))
RENEW = HandlerEvent("renew", renew, (Renew, Time))
WRITE = HandlerEvent("write", write, (Write, Time), assumed=lambda lease, request, now: request.token <= lease.token)
EXPIRE = HandlerEvent("expire", expire, ())
