"""One group of a trace: its search for an explanation, the steps that this settles, and the violations in it.

Nothing here is about a trace as a whole, nor about what one protocol has and another has not.
"""
