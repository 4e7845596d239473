"""Bounded exhaustive search: every state that the coordinator, its members and their network can reach.

The handlers that run here are the shipped ones. A state is a row of columns; what happens reads one or two of them, so
a handler runs once for each combination of values, not once for each state. networkx is imported in this room alone,
for liveness, export and tours; numpy only where it is found, for speed. Nothing here knows of adapters or traces.

What is covered: one group at one coordinator, a few processes, dynamic or static, eager or cooperative, with the
protocol vote. Each process has one request, one commit and one answer under way; a request may come late or twice, be
overtaken, or be written over and so lost, an answer may be lost. A process may crash, leave, join again, commit or
heartbeat at any moment, and any armed timer may fire at any moment: time is left out, so that every order of timers is
in. Every leader that might be elected, every plan that a leader that respects claims might make, every protocol that
might win is tried. Within the bounds (ids, generations, requests of a process, slots) the search is exact: states are
compared in full, never by a hash of them.

What is not: whatever lies beyond the bounds, which is counted as it is met; more than one request of a kind under way;
failover and deletion; the offsets themselves, callbacks, positions; how long anything takes. For unbounded sizes see
`model/proofs`, for what stands around the core the scenarios.

Reductions leave out fields that nobody will read and messages that nobody will heed, and take processes with the same
settings for the same. That a reduced state can do just what all those can for which it stands is compared state by
state in the tests. Liveness has no bounds on ids, generations and requests: names are made small again, so that a group
that never settles comes back to where it was, and the check asks for such a cycle that is fair.

`model/PHASES.md` is the state machine as a picture; `tests/benchmarks/explore.py` counts the same world with Spin.
"""
