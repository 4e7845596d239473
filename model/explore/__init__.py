"""Bounded exhaustive search: every state that the coordinator, its members and their network can reach.

It runs the shipped handlers. A state is a row of columns; an action reads one or two of them, so a handler runs once
for each combination of values, not once for each state. The only package that imports networkx, for liveness, export
and tours; it uses numpy, if installed, for speed. Adapters and traces do not belong here.

What is covered: one group at one coordinator, a few processes, dynamic or static, eager or cooperative, with the
protocol vote. Each process has one request, one commit and one response in flight; a request may arrive late or
twice, be overtaken, or be overwritten and so lost, a response may be lost. A process may crash, leave, rejoin, commit
or heartbeat at any moment, and any armed timer may fire at any moment: time is abstracted away, so that every order
of timers is covered. Every possible leader, every assignment of a leader that respects claims, and every possible
protocol is tried. Within the bounds (ids, generations, requests of a process, slots) the search is exact: states are
compared in full, never by a hash.

Not covered: states beyond the bounds, which are counted; more than one request of a kind in flight; failover and
deletion; the offsets themselves, callbacks, positions; durations. `model/proofs` covers unbounded sizes, scenarios
cover the handlers around the core.

Reductions drop fields that are never read again and messages that will be ignored, and identify processes with the
same settings. Tests check state by state that a reduced state has the same successors as all states it stands for.
Liveness has no bounds on ids, generations and requests: names are renumbered, so that a group that never settles
returns to an earlier state, and the check looks for a fair cycle.

`model/PHASES.md` is the state diagram.
"""
