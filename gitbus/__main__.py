"""Run gitbus: ``python -m gitbus``."""

from gitbus.cli import main

main()
