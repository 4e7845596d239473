"""The core: membership, generation, leader, protocol selection, sync, commit and timers of one group.

Plain functions on frozen values that also run on symbolic ones, so that the code that judges is the code that
is proved. Here `if` forks on single values only; loops over slots use the connectives of `logic`; tokens (ids,
names, metadata, assignments) are only compared and passed on; numbers are only added and compared. Versions,
validation and loading live in `model/classic/coordinator`, offsets and admin calls in `model/groups`, never here.
"""
