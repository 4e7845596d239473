"""The zoo: faulty implementations made from correct ones, to measure the power of the kit.

Known bugs are injected, and mutants are made systematically, from outside: by replacing named functions for one run, or
by rewriting syntax trees and loading the result beside the shipped modules. Shipped code outside this package has no
faults and no fault switches, and no change outlasts its run. There is a folder for each protocol; judging, and runs on
real targets, belong elsewhere.
"""
