"""The verdict corpus: traces of real brokers, which cannot be made again, each with the verdict that the judge gave.

The judge of the tree has to agree; `python -m tests.acceptance.verdict_corpus` compares them. The corpus records former
verdicts; it does not say that they are right.
"""
