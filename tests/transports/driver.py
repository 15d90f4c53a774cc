"""The child with a hook: at the n-th effect of a name it kills or stops itself, or logs every effect.

``python driver.py ROOT NAME DETAIL ACTION`` runs the child; ACTION happens right before the first
effect whose name is NAME and whose detail holds DETAIL. ``log`` writes all effects to stderr.
"""

from __future__ import annotations

import os
import signal
import sys


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
            os.kill(os.getpid(), getattr(signal, action))

    effects.hook = hook
    child()


main()
