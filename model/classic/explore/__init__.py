"""The classic group as a transition system: its states, actions, properties and reductions, and its transition tours.

The search engine in `model/explore` does not depend on this package.
"""
