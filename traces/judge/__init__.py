"""The judge: holds a trace against the set of states the model allows, one group at a time.

A trace goes in; out come the rule behind every accepted answer and, for a rejected one, what the model would have
allowed, the guard that was false, and the requirement with its source. The model is called, never repeated here.
"""
