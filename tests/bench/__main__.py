"""The first figures: ``python -m tests.bench``.

Measures the whole loop (a goal of trivial tasks, a conductor and four Python workers, each a process,
fsync on) against a plain file bus (temporary file, fsync, rename, poll) with as many processes, in
interleaved rounds, and prints medians and their ratio; then counts pushes and fetches per 1,000 tasks
through the push interface. Compare figures of one run only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gitbus import codec, effects, making
from gitbus.bus import Bus
from gitbus.records import Goal, Node
from gitbus.runner.function import FunctionRunner
from gitbus.worker import Offer

WORKERS = 4
CAPACITY = 100


def isolate(folder: Path) -> None:
    """Let nothing of the user's take part."""
    os.environ.update(HOME=str(folder), GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=str(folder / ".gitconfig"))


def trivial(task: Any, inputs: Any) -> dict[str, Any]:
    return {"n": task.inputs["n"]}


# --- gitbus


def make(folder: Path, tasks: int, *, push: bool) -> None:
    key = making.make_key(folder / "key", "ada@acme.example")
    making.make_bus(folder / "bus", name="bench", approver=making.Approver("ada", "ada@acme.example", key))
    making.use_key(folder / "bus", folder / "key", "Ada", "ada@acme.example")
    if push:  # a hook of somebody else's makes the hub one that is reached by fetch and push
        hook = folder / "bus.git" / "hooks" / "post-update"
        hook.write_text("#!/bin/sh\nexit 0\n", "utf-8")
        hook.chmod(0o755)
    nodes = {f"t{n}": Node(capability="do", inputs={"n": n}) for n in range(tasks)}
    with Bus.open(folder / "bus") as bus:
        bus.add_goal(codec.write(Goal(id="bench", tasks=nodes)))


def work(folder: str, number: int, stop: Any, counts: Any) -> None:
    count(counts)
    with Bus.open(Path(folder) / "bus") as bus:
        worker = bus.worker(Offer(f"w{number}", ("do",), CAPACITY), FunctionRunner(trivial))
        worker.announce()
        while not stop.is_set():
            if not worker.step():
                worker.rest(0.5)


def count(counts: Any) -> None:
    def hook(name: str, detail: str) -> None:
        del detail
        if name in ("push", "fetch"):
            with counts.get_lock():
                counts[0 if name == "push" else 1] += 1

    effects.hook = hook


def gitbus_round(tasks: int, *, push: bool = False) -> tuple[float, int, int]:
    """Return seconds, pushes and fetches of one run."""
    with tempfile.TemporaryDirectory(prefix="gitbus-bench-") as name:
        folder = Path(name)
        isolate(folder)
        make(folder, tasks, push=push)
        context = multiprocessing.get_context("fork")
        stop, counts = context.Event(), context.Array("i", 2)
        workers = [context.Process(target=work, args=(name, n, stop, counts)) for n in range(WORKERS)]
        for one in workers:
            one.start()
        with Bus.open(folder / "bus") as bus:
            while sum("presence" in ref for ref in bus.refs()) < WORKERS:
                time.sleep(0.01)
            count(counts)
            conductor = bus.conductor()
            began = time.perf_counter()
            while True:
                if not conductor.tick():
                    if bus.board().goals["bench"].report is not None:
                        break
                    bus.hub.wait(0.5, {})
            took = time.perf_counter() - began
            report = bus.board().goals["bench"].report
            assert report is not None
            assert (report.state, len(report.tasks)) == ("done", tasks)
        stop.set()
        for one in workers:
            one.join()
        effects.hook = None
        return took, counts[0], counts[1]


# --- the file bus


def put(path: Path, value: dict[str, Any]) -> None:
    """Write a file whole and durably: temporary file, fsync, rename, fsync of the folder."""
    temporary = path.with_suffix(".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    handle = os.open(path.parent, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def file_worker(folder: str, number: int, stop: Any) -> None:
    inbox, mine, outbox = (Path(folder) / part for part in ("in", f"mine{number}", "out"))
    while not stop.is_set():
        found = [path for path in sorted(inbox.glob("*.json"))[:8] if claim(path, mine / path.name)]
        for path in found:
            taken = mine / path.name
            task = json.loads(taken.read_text("utf-8"))
            put(outbox / path.name, {"task": task["id"], "outputs": {"n": task["n"]}})
            taken.unlink()
        if not found:
            time.sleep(0.002)


def claim(path: Path, mine: Path) -> bool:
    """Take a task that several workers see; one rename wins."""
    try:
        path.rename(mine)
    except FileNotFoundError:
        return False
    return True


def file_round(tasks: int) -> float:
    """Return the seconds that the file bus takes for as many tasks."""
    with tempfile.TemporaryDirectory(prefix="file-bench-") as name:
        folder = Path(name)
        for part in ("in", "out", "done", *(f"mine{n}" for n in range(WORKERS))):
            (folder / part).mkdir()
        context = multiprocessing.get_context("fork")
        stop = context.Event()
        workers = [context.Process(target=file_worker, args=(name, n, stop)) for n in range(WORKERS)]
        for one in workers:
            one.start()
        began = time.perf_counter()
        for n in range(tasks):
            put(folder / "in" / f"t{n}.json", {"id": f"t{n}", "n": n})
        done = 0
        while done < tasks:
            found = list((folder / "out").glob("*.json"))
            for path in found:
                json.loads(path.read_text("utf-8"))
                path.rename(folder / "done" / path.name)
            done += len(found)
            if not found:
                time.sleep(0.002)
        took = time.perf_counter() - began
        stop.set()
        for one in workers:
            one.join()
        return took


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(
        f"Python {sys.version.split()[0]}, {git}, {os.cpu_count()} cores; {chosen.tasks} tasks, {chosen.rounds} rounds"
    )
    ours, files = [], []
    for _ in range(chosen.rounds):
        ours.append(chosen.tasks / gitbus_round(chosen.tasks)[0])
        files.append(chosen.tasks / file_round(chosen.tasks))
    for name, rates in (("gitbus, embedded", ours), ("plain file bus", files)):
        print(
            f"{name:20} {statistics.median(rates):8.0f} tasks/s  (min {min(rates):.0f}, max {max(rates):.0f})"
        )
    ratio = statistics.median(a / b for a, b in zip(ours, files, strict=True))
    print(f"{'ratio':20} {ratio:8.2f}")
    seconds, pushes, fetches = gitbus_round(chosen.tasks, push=True)
    per = 1000 / chosen.tasks
    print(
        f"push interface: {chosen.tasks / seconds:.0f} tasks/s, per 1,000 tasks {pushes * per:.0f} pushes, {fetches * per:.0f} fetches"
    )


if __name__ == "__main__":
    main()
