"""The verdict corpus: thousands of traces and what the judge of commit 79b4ef4 said of each.

The tree at hand has to say the same; `python -m tests.acceptance.verdict_corpus` sees to it.

`make` runs on a worktree of that commit and uses its names, which never change; `canonical`, `conversion` and `compare`
belong to the tree at hand. `recordings` holds what cannot be made again: traces of real brokers, with their verdicts.
Nothing here says what is right, only what was said.
"""
