"""The history of the groups in a trace: phases, generations, members, rebalances with their delays, and offsets.

A history is told from three sources: the steps of the model that explain a trace, the messages alone where the model
does not know the state of a group, and the lines of a coordinator's log. Nothing here judges, and nothing renders.
"""
