"""A transport's child that dies or fails at its n-th effect; started by the driver."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gitbus import effects
from gitbus.transports import child
from tests.crash.driver import Stopper

effects.hook = Stopper(sys.argv[1], int(sys.argv[2]))
child.main()
