"""The fixture of the hub's contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hubs import Made, hub_of


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Make a hub of the kind that the test is given."""
    with hub_of(request.param, tmp_path, monkeypatch.setenv) as found:
        yield found
