"""Held-out faults of clients: 20 errors of members, assignors and fetchers. They measure checks and schedules.

Each contradicts one statement of member.md. The statements were drawn: the lines of its sections 1.2 to 4.5 (members),
5 (assignors) and 6 (fetchers) were shuffled with `random.Random("2026-11-24 " + side)`, and the first 12, 4 and 4 were
taken that say what a client does and that no bug of the zoo contradicts already; `PASSED_OVER` has the others up to
there, with the reason. Whoever wrote the faults had read the interactions of the schedules and three modules of
scenarios, and none of the checks in `traces/client_judge` and `model/assignors/checks.py`. All were written before any
was hunted. They stay held out: nobody tunes an interaction, a scenario or a check on one of them, and none of them
becomes a bug of the zoo. `python -m tests.acceptance faulty_clients` hunts them.
"""
