"""How a worker runs a task: around a command, an agent's command line, or a Python function."""
