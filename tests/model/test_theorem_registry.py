"""A theorem has one name and one sentence, whichever engine looks at it."""

from fencepost.model.classic.explore.properties import PROPERTIES
from fencepost.model.classic.kernel import invariants
from fencepost.model.classic.proofs.results import theorem_sentences
from fencepost.model.classic.theorems.registry import REGISTRY
from fencepost.model.classic.theorems.request_statements import STEP_THEOREMS
from fencepost.model.classic.theorems.statements import THEOREMS


def test_the_registry_has_every_theorem() -> None:
    assert tuple(one.statement for one in REGISTRY) == (*THEOREMS, *STEP_THEOREMS)
    kernel = {one.invariant for one in REGISTRY} - {None}
    assert kernel == {*invariants.THEOREMS, invariants.no_stale_commit}


def test_proof_and_search_use_its_names_and_sentences() -> None:
    sentences, searched = theorem_sentences(), {one.name: one.sentence for one in PROPERTIES}
    for one in REGISTRY:
        assert sentences[one.id] == one.sentence
        assert sentences.get(one.kernel_id, one.sentence) == searched.get(one.search_name, one.sentence) == one.sentence
    assert {one.search_name for one in REGISTRY if one.search_name} <= searched.keys()
