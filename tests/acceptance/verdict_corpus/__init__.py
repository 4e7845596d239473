"""The verdict corpus: thousands of traces, each with the verdict of the judge of commit 79b4ef4.

The judge of the current tree has to agree; `python -m tests.acceptance.verdict_corpus` compares them.

`make` runs on a worktree of that commit and uses its names, which never change; `canonical`, `conversion` and `compare`
belong to the current tree. `recordings` holds traces of real brokers with their verdicts, which cannot be made again.
The corpus records former verdicts; it does not say that they are right.
"""
