#!/usr/bin/env python3
"""A worker for `release-notes`: writes a Result in which every FACT names the commit it rests on."""

import json
import os
import sys


def main() -> int:
    task = json.load(sys.stdin)
    project, commits = task["inputs"]["project"], task["inputs"]["commits"]
    if not commits:
        print("there are no commits to write about", file=sys.stderr)
        return 1
    lines = [f"- {one['subject']} ({one['sha'][:10]})" for one in commits]
    markdown = f"## What is new in {project}\n\n" + "\n".join(lines) + "\n"
    evidence = [{"id": f"c{n}", "kind": "commit", "ref": one["sha"]} for n, one in enumerate(commits, 1)]
    claims = [
        {"text": one["subject"], "provenance": "FACT", "evidence": [f"c{n}"]}
        for n, one in enumerate(commits, 1)
    ]
    claims.append({"text": "These are the changes that readers care about most.", "provenance": "OPINION"})
    count = f"{len(commits)} changes" if len(commits) > 1 else "one change"
    result = {
        "status": "ok",
        "confidence": 0.92,
        "outputs": {"title": f"New in {project}: {count}"[:120], "markdown": markdown},
        "evidence": evidence,
        "claims": claims,
    }
    with open(os.path.join(os.environ["GITBUS_ARTIFACTS"], "notes.md"), "w", encoding="utf-8") as file:
        file.write(markdown)
    with open(os.environ["GITBUS_RESULT"], "w", encoding="utf-8") as file:
        json.dump(result, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
