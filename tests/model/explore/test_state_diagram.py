"""PHASES.md agrees with rules and handlers. `python -m tests.model.explore.test_state_diagram` writes it anew."""

from pathlib import Path

import pytest

from fencepost.model.classic.core import membership
from fencepost.model.classic.core.state import Phase
from fencepost.model.classic.explore.group_system import group_system
from fencepost.model.classic.explore.state_diagram import (
    Arrow,
    documented_arrows,
    mermaid_diagram,
    render_page,
    searched_arrows,
)
from fencepost.model.classic.explore.state_layout import Bounds, ModelConfig, untimed_member
from fencepost.model.explore.engine import explore_system

PAGE = Path(__file__).parents[3] / "model" / "PHASES.md"
ONE = group_system(ModelConfig((untimed_member(),)), Bounds(1, 2, 3, 1))


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(*documented_arrows())


def test_arrows_between_phases_are_drawn() -> None:
    drawn = list(
        mermaid_diagram(
            {Arrow(Phase.EMPTY, Phase.EMPTY, "a"), Arrow(Phase.EMPTY, Phase.STABLE, "b")}, Phase, Phase.EMPTY
        )
    )
    assert drawn == ["```mermaid", "stateDiagram-v2", "    [*] --> Empty", "    Empty --> Stable: b", "```"]


def test_another_handler_makes_another_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Arrow(Phase.STABLE, Phase.EMPTY, "leave.member")
    assert ends in searched_arrows(explore_system(ONE)[0].tables)
    monkeypatch.setattr(membership, "trigger_rebalance", lambda group, context: (group, ()))
    assert ends not in searched_arrows(explore_system(ONE)[0].tables)


if __name__ == "__main__":
    PAGE.write_text(render_page(*documented_arrows()), encoding="utf-8")
