"""gitbus: a git repository as the bus for a fleet of agents. Nothing leaves unapproved or twice."""

__version__ = "0.1.0"
