"""The identity set: what the kit says today about things that do not change, frozen, so that a refactoring can show
that it changed none of it.

`python -m tests.identity` compares every part with its frozen content and shows what differs; `--record PART ...`
freezes what is meant to differ, and the commit says why. `recordings` has traces of Apache Kafka 3.9 and 4.x, some of
them altered, which cannot be made again; the part of that name has their verdicts in each way of judging. What is
frozen is what was said before; nobody claims that it is right.
"""
