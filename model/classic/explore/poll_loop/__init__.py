"""Poll loops as a system to explore: reference clients whose applications take time for each record (KIP-41).

The coordinator and the clients are the functions of `model/classic`; here are only the applications, the clock and a
network that loses nothing. Time goes by in ticks, and a state holds times relative to the present, so that a search
ends and its answers are about runs of any length.
"""
