"""The child with a hook: at the n-th effect of a name it kills or stops itself, or logs every effect.

``python driver.py ROOT NAME DETAIL ACTION`` runs the child; ACTION happens right before the first
effect whose name is NAME and whose detail holds DETAIL. ``log`` appends all effects to the file
DETAIL; ``unread`` dies when the server's answer has arrived and before it is read.
"""

from __future__ import annotations

import os
import select
import signal
import sys


def die_with_an_answer_unread() -> None:
    from gitbus.transports.smtp_wire import Wire

    def wait(wire: Wire) -> tuple[int, bytes]:
        select.select([wire.open_socket], [], [], 10)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    Wire.getreply = wait  # type: ignore[method-assign]


def main() -> None:
    root, name, detail, action = sys.argv[1:5]
    sys.path.append(root)
    from gitbus import effects
    from gitbus.transports.child import main as child

    def hook(seen: str, about: str) -> None:
        if action == "log":
            with open(detail, "a") as file:  # noqa: PTH123
                file.write(f"{seen} {about}\n")
        elif seen == name and detail in about:
            effects.hook = None
            if action == "raise":
                raise RuntimeError("the hook said so")
            if action == "print":
                os.write(1, b"a library prints\n")
                print("and again", flush=True)
                return
            if action == "unread":
                die_with_an_answer_unread()
                return
            os.kill(os.getpid(), getattr(signal, action))

    effects.hook = hook
    child()


main()
