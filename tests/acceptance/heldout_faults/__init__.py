"""Held-out faults: 30 errors of a kind that real coordinators ship, with a witness each. They measure random schedules.

They were written on 22 November 2026, before the generator of random schedules was extended, by somebody who had not
read it, nor the scenarios, nor the bugs of the zoo; only the kinds of situation were given. They stay held out: nobody
tunes the generator, a scenario or a rule on one of them, and none of them becomes a bug of the zoo. To reproduce what
was missed, look at the kind and not at the fault.

A fault is a few edits to functions of the bundled coordinator, applied from outside while it is measured. Its witness
is the shortest scenario by hand at which the responses of the faulty coordinator differ from those of the shipped one.
`tests.acceptance.test_heldout` plays the witnesses; `python -m tests.acceptance heldout` runs random schedules.
"""
