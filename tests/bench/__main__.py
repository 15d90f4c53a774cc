"""The first figures: ``python -m tests.bench``.

Measures the whole loop (a goal of trivial tasks, a conductor and four Python workers, each a process,
fsync on) against a plain file bus with as many processes, in interleaved rounds, and prints medians and
their ratio; then counts pushes and fetches per 1,000 tasks through the push interface. Compare figures
of one run only.

The clock of both runs from the conductor's first look, with the workers there and waiting, until it has
taken in the last result (gitbus: until the goal's report is on the bus). The file bus does what such a
bus has to and no more: every task and every result is a JSON file with all the fields of the record that
gitbus keeps, written as temporary file, fsync, rename, fsync of the folder; workers poll one inbox, each
beginning with tasks of its own so that they seldom meet, and claim by rename; the conductor polls the
outbox, reads and files away. It checks nothing, and keeps neither states nor history.
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

from gitbus import codec, effects, making, paths
from gitbus.bus import Bus
from gitbus.clock import utc_now
from gitbus.ids import time_text
from gitbus.loops import seldom_collecting
from gitbus.records import Goal, Node, Result, Task
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


def is_settled(bus: Bus) -> bool:
    """Say whether the goal's report is there; the board is read once the clock has stopped."""
    return bus.hub.store.entry(bus.refs()[bus.hub.main], paths.report("bench")) is not None


def work(folder: str, number: int, stop: Any, counts: Any) -> None:
    count(counts)
    with seldom_collecting(), Bus.open(Path(folder) / "bus") as bus:
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
        with seldom_collecting(), Bus.open(folder / "bus") as bus:
            while sum("presence" in ref for ref in bus.refs()) < WORKERS:
                time.sleep(0.01)
            count(counts)
            conductor = bus.conductor()
            began = time.perf_counter()
            while True:
                if not conductor.tick():
                    if is_settled(bus):
                        break
                    bus.hub.wait(0.5, conductor.seen)
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


def file_worker(folder: str, number: int, stop: Any, ready: Any) -> None:
    inbox, mine, outbox = (Path(folder) / part for part in ("in", f"mine{number}", "out"))
    ready.wait()
    while not stop.is_set():
        names = sorted(files(inbox))[number::WORKERS][:8]
        found = [name for name in names if claim(inbox / name, mine / name)]
        for name in found:
            task = json.loads((mine / name).read_text("utf-8"))
            put(outbox / name, result_of(task, f"w{number}"))
            (mine / name).unlink()
        if not found:
            time.sleep(0.002)


def files(folder: Path) -> list[str]:
    """Return the names of the files in a folder that are whole."""
    return [entry.name for entry in os.scandir(folder) if entry.name.endswith(".json")]


def task_of(n: int) -> dict[str, Any]:
    """Return all that gitbus keeps of a task that is given out."""
    now = time_text(utc_now())
    return {**TASK, "id": f"t{n}", "inputs": {"n": n}, "ready_at": now, "assigned_at": now, "deadline": now}


def result_of(task: dict[str, Any], worker: str) -> dict[str, Any]:
    """Return all that gitbus keeps of a result."""
    started = time_text(utc_now())
    outputs = {"n": task["inputs"]["n"]}
    times = {"started_at": started, "finished_at": time_text(utc_now())}
    return {**RESULT, "task": task["id"], "worker": worker, "outputs": outputs, **times}


TASK = Task(
    goal="bench", id="t", state="assigned", capability="do", worker="w0", ready_at=utc_now()
).model_dump(mode="json", by_alias=True)
RESULT = Result(goal="bench", task="t", attempt=1, worker="w0", status="ok").model_dump(
    mode="json", by_alias=True
)


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
        stop, ready = context.Event(), context.Barrier(WORKERS + 1)
        workers = [context.Process(target=file_worker, args=(name, n, stop, ready)) for n in range(WORKERS)]
        for one in workers:
            one.start()
        ready.wait()
        began = time.perf_counter()
        for n in range(tasks):
            put(folder / "in" / f"t{n}.json", task_of(n))
        done = 0
        while done < tasks:
            found = files(folder / "out")
            for file in found:
                json.loads((folder / "out" / file).read_text("utf-8"))
                (folder / "out" / file).rename(folder / "done" / file)
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
