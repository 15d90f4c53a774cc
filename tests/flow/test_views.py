"""Drawings of a goal's tasks, whatever the tasks are called."""

from __future__ import annotations

import re

import pytest

from gitbus import mermaid, views
from tests.forge.pages import make_board, make_goal

AWKWARD = ("end", "default", "a--b", "subgraph", "click", "style", "o-x", "graph")
"""Ids that Mermaid takes for words of its language, or for arrows."""

TASKS = {
    name: {"capability": "x", "needs": [{"task": AWKWARD[at - 1], "optional": at % 2 == 0}] if at else []}
    for at, name in enumerate(AWKWARD)
}
STATEMENT = re.compile(
    r'(n\d+\["[a-z0-9-]+<br/>\w+"\]:::\w+|n\d+ (-->|-\.->) n\d+|classDef \w+ fill:\S+)', re.ASCII
)


def test_no_id_is_a_word_of_mermaid() -> None:
    goal = make_goal(tasks=TASKS, states={"end": "done"})
    first, *lines = views.mermaid(make_board(goals=(goal,)), goal).splitlines()
    assert first == "graph LR"
    assert [line for line in lines if not STATEMENT.fullmatch(line.strip())] == []
    assert '  n0["end<br/>done"]:::done' in lines
    assert '  n2["a--b<br/>unreleased"]:::unreleased' in lines
    assert "  n0 --> n1" in lines
    assert "  n1 -.-> n2" in lines


@pytest.mark.parametrize("text", ['"]; click n0', "<b>", "`md`", "#quot;", "a\nb", "%%{init}%%", "[x]{y}|z|"])
def test_a_label_says_no_more_than_text(text: str) -> None:
    shown = mermaid.label(text)
    assert re.fullmatch(r'"([\w\s.,:;/()×-]|#\d+;)*"', shown)
    assert re.sub(r"#(\d+);", lambda found: chr(int(found[1])), shown[1:-1]) == text
