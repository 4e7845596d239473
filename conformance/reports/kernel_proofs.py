"""The output of `fencepost prove` for a design: a line for each theorem, and for each wording that is false."""

import json

from fencepost.conformance.results import ExitCode
from fencepost.model.proofs.results import TheoremResult

EXPECTED = ("proved", "false, as it should be")


def theorem_line(result: TheoremResult) -> str:
    """A result in one line."""
    text = f"{result.verdict}  {result.id}: {result.sentence}"
    return f"{text} Covers {result.covers}. Not: {result.excludes}." if result.verdict == "proved" else text


def summarize_proofs(results: tuple[TheoremResult, ...]) -> str:
    """The last line."""
    proved, false = (sum(one.verdict == verdict for one in results) for verdict in EXPECTED)
    rest = len(results) - proved - false
    longest = max((one.longest for one in results), default=0.0)
    text = f"{proved} theorems proved, {false} false wordings shown false"
    return f"{text}{f', {rest} in doubt' if rest else ''}, the longest query {longest:.2f} s"


def exit_code(results: tuple[TheoremResult, ...]) -> ExitCode:
    """1 if anything is refuted, vacuous or not broken, 3 if the solver gave up, else 0."""
    verdicts = {one.verdict for one in results} - set(EXPECTED)
    if not verdicts:
        return ExitCode.CONFORMANT
    return ExitCode.INCONCLUSIVE if verdicts == {"undecided"} else ExitCode.VIOLATION


def to_json(results: tuple[TheoremResult, ...], protocol: str, seed: int) -> str:
    """The results as JSON."""
    rows = [
        {
            "id": one.id,
            "sentence": one.sentence,
            "verdict": one.verdict,
            "covers": one.covers,
            "excludes": one.excludes,
            "seconds": round(one.seconds, 3),
            "longest_query_seconds": round(one.longest, 3),
        }
        for one in results
    ]
    return json.dumps({"protocol": protocol, "seed": seed, "theorems": rows}, indent=2) + "\n"
