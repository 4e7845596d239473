"""The document about the proofs names every theorem in the registry, every false wording, and nothing else."""

import re

import pytest

from fencepost.conformance.cli import main
from fencepost.conformance.results import ExitCode
from fencepost.model.classic.proofs.results import theorem_sentences
from fencepost.model.classic.theorems.non_theorems import FALSE_THEOREMS
from fencepost.model.draining.non_theorems import FALSE_CLAIMS
from fencepost.model.proofs.solver import QUERY_STEPS
from fencepost.model.push.proofs import SENTENCES
from fencepost.model.region.proofs import SENTENCES as REGION_SENTENCES
from tests.support.proof_document import DOCUMENT, ROOT, rows


def test_the_theorems_are_those_of_the_registry() -> None:
    assert rows("| theorem | sentence |") == list(theorem_sentences().items())


def test_the_theorems_about_the_push_coordinator_are_those_that_are_proved() -> None:
    assert rows("| push theorem | sentence |") == list(SENTENCES.items())


def test_the_theorems_about_the_region_are_those_that_are_proved() -> None:
    assert rows("| region theorem | sentence |") == list(REGION_SENTENCES.items())


def test_the_false_wordings_are_those_that_are_shipped() -> None:
    shipped = [(one.statement.id, one.statement.sentence, one.reason) for one in FALSE_THEOREMS]
    assert rows("| wording | sentence | false because |") == shipped


def test_the_false_claims_about_draining_are_those_that_are_shipped() -> None:
    assert rows("| claim | sentence | false because |") == [(one.id, one.sentence, one.reason) for one in FALSE_CLAIMS]


def test_what_is_claimed_of_code_is_there() -> None:
    named = {path for path in re.findall(r"`([a-z_/]+(?:\.py)?)`", DOCUMENT) if "/" in path or path.endswith(".py")}
    folders = ("", "classic/theorems", "proofs", "classic/proofs")
    places = (ROOT, *(ROOT / "model" / folder for folder in folders))
    assert [path for path in named if not any((place / path).exists() for place in places)] == []
    assert len(named) > 8


def test_bounds_are_the_defaults_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    document = " ".join(DOCUMENT.split())
    assert f"A query may take {QUERY_STEPS // 1_000_000} million steps of the solver." in document
    assert main(["prove", "--help"]) == ExitCode.CONFORMANT
    text = " ".join(capsys.readouterr().out.split())
    assert "places for members (default: 3)" in text and "ids handed out, 3 by default)" in document
    assert "partitions (default: 3)" in text and "partitions (`--partitions`, 3)" in document
    assert "a member may offer (default: 2)" in text and "offers (`--protocols`, 2)" in document
