"""The zoo: what is broken on purpose, and hunts that measure how well the kit finds it.

Known bugs are put back, and mutants are made systematically, from outside: by replacing named functions for one run, or
by rewriting syntax trees and loading the result beside the shipped modules. Shipped code outside this package carries
no fault and no switch for one, and no fault outlasts the run that it is for. The modules here know no protocol: a
`Fault` names its subject and the requirements that it may be called by, a `Stand` says how it is played, and a
`ProtocolZoo`, found by the entry of its protocol, adds faults and stands; `classic` has those of the classic one.
Judging, and all that a run on a real target needs, belongs elsewhere.
"""
