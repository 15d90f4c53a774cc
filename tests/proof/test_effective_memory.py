"""Going on from what is remembered finds what looking from the root finds, whatever was written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.busrepo import BusRepo, changed_bus


def signed(bus: BusRepo) -> None:
    bus.set_bus("ada", sending={"hold": f"{len(bus.store.line(bus.tip))}m"})


def named(bus: BusRepo) -> None:
    bus.set_bus("bob", name=True, sending={"hold": f"{len(bus.store.line(bus.tip))}h"})


def unsigned(bus: BusRepo) -> None:
    bus.write_bus(changed_bus(bus.bus, sending={"hold": "3s"}), "conductor", key=None)


def stop(bus: BusRepo) -> None:
    bus.write_bus(changed_bus(bus.bus, sending={"enabled": False}), "conductor", key=None)


def garble(bus: BusRepo) -> None:
    bus.write_bus("?\n", "conductor", key=None)


def back(bus: BusRepo) -> None:
    bus.write_bus(bus.store.blob(bus.effective().blob), "conductor", key=None)


def ratify(bus: BusRepo) -> None:
    bus.ratify("ada")


def other(bus: BusRepo) -> None:
    bus.commit({"goals/a.md": f"{bus.tip}\n"})


STEPS: list[Callable[[BusRepo], None]] = [signed, named, unsigned, stop, garble, back, ratify, other]


@pytest.mark.long
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.lists(st.sampled_from(STEPS), min_size=3, max_size=8))
def test_with_memory_as_without(steps: list[Callable[[BusRepo], None]]) -> None:
    with TemporaryDirectory() as folder:
        bus = BusRepo(Path(folder))
        remembered = [bus.effective()]
        for step in steps:
            step(bus)
            remembered.append(bus.effective())
        history = bus.fresh()
        for known in remembered:
            assert bus.effective(known=known) == remembered[-1]
            assert known.bus == remembered[-1].at(history, known.tip)
        bus.close()
