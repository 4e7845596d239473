"""The zoo: faulty coordinators made of the shipped one, and hunts that measure how well the kit finds them.

Known bugs are put back, and mutants are made systematically, from outside: by replacing named functions for one run, or
by rewriting syntax trees and loading the result beside the shipped modules. Shipped code outside this package carries
no fault and no switch for one, and no fault outlasts the run that it is for. `mutation` changes programs, `classic` has
the faulty coordinators of the classic protocol, the modules here hunt them and record the results. Judging, and all
that a run on a real target needs, belongs elsewhere.
"""
