#!/usr/bin/env python3
"""A worker for `git-log`: reads a task on stdin, prints the commits of a real history as JSON."""

import json
import subprocess
import sys

FORMAT = "%H%x1f%s%x1f%an%x1f%aI"


def main() -> int:
    task = json.load(sys.stdin)
    inputs = task["inputs"]
    command = ["git", "-C", inputs["repository"], "log", f"--format={FORMAT}", "--no-merges"]
    command += [
        f"--max-count={int(inputs.get('limit', 20))}",
        "--end-of-options",
        inputs.get("range", "HEAD"),
        "--",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr.strip(), file=sys.stderr)
        return 1
    names = ("sha", "subject", "author", "date")
    commits = [dict(zip(names, line.split("\x1f"), strict=True)) for line in done.stdout.splitlines()]
    json.dump({"commits": commits}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
