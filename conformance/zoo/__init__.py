"""The zoo: wrong implementations made of right ones, to see what the kit finds.

Known bugs are put back, and small faults tried systematically, from outside: by replacing named functions for one run,
or by rewriting syntax trees and loading the result beside the shipped modules. Shipped code outside this room carries
no fault and no switch for one, and nothing here outlasts the run that it is for. There is a folder for each kind of
implementation; judging, and whatever a run on a real target needs, belongs elsewhere.
"""
