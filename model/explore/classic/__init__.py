"""The classic group as a transition system: its states, actions, properties and reductions, and its transition tours.

The engine that searches it lies one folder up and knows none of this.
"""
