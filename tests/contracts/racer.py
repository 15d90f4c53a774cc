"""Commits some changes to the bus's branch, each again until nobody was faster: CLONE NUMBER CHANGES."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from gitbus.hub import Author, Draft, RefMove, open_hub


def main(clone: str, number: str, changes: str) -> None:
    """Make the changes."""
    hub = open_hub(Path(clone))
    for change in range(int(changes)):
        tries = 0
        while True:
            tip = hub.look()[hub.main]
            tree = hub.store.write_tree(hub.store.commit(tip).tree, {f"{number}-{change}": b"here\n"})
            new = hub.store.write_commit(Draft(tree, (tip,), f"{number}/{change}", Author("racer", "r@bus")))
            if hub.move([RefMove(hub.main, tip, new)]).moved(hub.main):
                break
            tries += 1
            time.sleep(random.uniform(0, 0.01 * min(tries, 20)))
    hub.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
