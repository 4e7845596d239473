"""The classic protocol as the judge sees it: steps, comparison of responses, what stays unseen, and the words for it.

It plugs into the engines by `ClassicStepper` and `ClassicProtocol`, and never holds a search of its own.
"""
