"""The classic protocol for the judge: steps, comparison of responses, unseen actions, and the wording of violations.

It plugs into the engines by `ClassicStepper` and `ClassicProtocol`, and never holds a search of its own.
"""
