"""The share of the judge that is said to be inside the proof is what is measured, and is told the same everywhere."""

from pathlib import Path

import pytest

from fencepost.model.classic.catalogue import RULES
from fencepost.model.classic.proofs import results as told
from fencepost.model.classic.proofs.results import INSIDE_RULES, LINES_PERCENT, STEPS_PERCENT, share_sentence
from tests.support import proof_share

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_share_of_rules_steps_and_lines_is_measured() -> None:
    rules, functions = proof_share.run_by_the_proof()
    assert (len(rules), len(RULES)) == (INSIDE_RULES, told.RULES)
    assert {"sync.incomplete", "heartbeat.empty", "join.unknown-group", "commit.nothing-to-ask", "load.group"} <= rules
    assert not any(name.startswith(("transaction.", "gate.", "describe.")) for name in rules)
    steps, every_step = proof_share.steps_inside()
    assert round(100 * steps / every_step) == STEPS_PERCENT
    lines, every_line = proof_share.lines_inside()
    assert round(100 * lines / every_line) == LINES_PERCENT
    assert {"join", "on_commit", "handle_request"} <= {code.co_name for code in functions}


@pytest.mark.parametrize("document", ["README.md", "model/PROOFS.md"])
def test_documents_tell_the_share(document: str) -> None:
    text = " ".join((ROOT / document).read_text(encoding="utf-8").split())
    assert f"{STEPS_PERCENT} % of the steps" in text
    assert f"{INSIDE_RULES} of {len(RULES)} rules" in text
    assert f"{LINES_PERCENT} % of the lines" in text


def test_the_command_tells_the_share() -> None:
    assert share_sentence().startswith(f"Inside the proofs about handlers: {STEPS_PERCENT} % of the steps")
