"""The judge: holds a trace against the set of states the model allows, one group at a time.

The input is a trace. The output is the rule behind every accepted response and, for a rejected one, the allowed
responses, the false guard, and the requirement with its source. The judge calls the model and never repeats its rules.
"""
