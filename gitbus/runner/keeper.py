"""A small process between worker and command that leaves nothing of the command behind.

It runs as a script of its own, imports nothing of gitbus, and keeps these rules: the command leads
a session of its own; when it ends, or the worker lets go of the control pipe (on purpose, or
because it died), everything that descends from it is ended too. On Linux that holds for processes
that left the session as well, because orphans come to the keeper (``PR_SET_CHILD_SUBREAPER``,
prctl(2)); elsewhere it holds for the process group.

Example: ``python -I -S keeper.py 3 4 2.0 '' git log`` waits on fd 3 and writes ``exit 0`` to fd 4.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SWEEP = 10.0
"""Seconds for everything to be gone after SIGKILL; what hangs in the kernel is left."""


def prctl(option: int, value: int) -> None:
    """Set an attribute of this process; nothing where the system has no such call."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def start(command: list[str], status: int) -> int:
    """Start the command in a session of its own and return its process id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        for name in (signal.SIGPIPE, signal.SIGCHLD):
            signal.signal(name, signal.SIG_DFL)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execvp(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(status, b"errno %d\n" % (error.errno or 0))
    os._exit(127)


def descendants(pid: int | str = "self") -> list[int]:
    """Return the process ids below a process, the nearest first; none where /proc does not tell."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib would cost as much as the rest
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:  # noqa: PTH123
                found += [int(child) for child in file.read().split()]
    except OSError:
        return found
    return found + [below for child in found for below in descendants(child)]


def send(number: int, leader: int, others: list[int], user: str) -> None:
    """Send a signal to the command's group and to other processes, as ``user`` where we may not."""
    refused = []
    for target in (-leader, *others):
        try:
            os.kill(target, number)
        except ProcessLookupError:
            continue
        except PermissionError:
            refused.append(str(target))
    if refused and user:
        quiet = 'exec kill -s "$0" -- "$@" 2>/dev/null'
        name = signal.Signals(number).name.removeprefix("SIG")
        os.spawnlp(os.P_WAIT, "sudo", "sudo", "-n", "-u", user, "--", "sh", "-c", quiet, name, *refused)  # noqa: S606


def reap(leader: int) -> tuple[str | None, bool]:
    """Collect what ended; return the command's own end, if it was among that, and whether any is left."""
    ended = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        if pid == leader:
            code = os.waitstatus_to_exitcode(status)
            ended = f"exit {code}" if code >= 0 else f"signal {-code}"


def wait(leader: int, control: int, woken: int, grace: float, user: str) -> str:
    """Wait for the command; after the control pipe closes, give it ``grace`` seconds to end itself."""
    until = None
    while True:
        ended, _ = reap(leader)
        if ended:
            return ended
        left = None if until is None else until - time.monotonic()
        if left is not None and left <= 0:
            return f"signal {int(signal.SIGKILL)}"
        ready, _, _ = select.select([woken, *([control] if until is None else [])], [], [], left)
        if woken in ready:
            os.read(woken, 4096)
        if control in ready:
            until = time.monotonic() + grace
            send(signal.SIGTERM, leader, descendants(), user)


def sweep(leader: int, woken: int, user: str) -> bool:
    """Kill what is left, again and again as orphans arrive; say whether all is gone."""
    until = time.monotonic() + SWEEP
    while time.monotonic() < until:
        send(signal.SIGKILL, leader, descendants(), user)
        if not reap(leader)[1]:
            return True
        if select.select([woken], [], [], 0.02)[0]:
            os.read(woken, 4096)
    return False


def main(arguments: list[str]) -> None:
    """Run ``CONTROL STATUS GRACE USER COMMAND…``: two descriptors, seconds, a user or nothing."""
    control, status = int(arguments[0]), int(arguments[1])
    grace, user, command = float(arguments[2]), arguments[3], arguments[4:]
    os.set_inheritable(control, False)
    os.set_inheritable(status, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    leader = start(command, status)
    os.write(status, b"pid %d\n" % leader)
    ended = wait(leader, control, woken, grace, user)
    gone = sweep(leader, woken, user)
    os.write(status, f"{ended}\n{'gone' if gone else 'left'}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1:])
