#!/usr/bin/env python3
"""A worker for `compose-email`: turns the notes into the text of a mail."""

import json
import os
import sys


def main() -> int:
    task = json.load(sys.stdin)
    notes = task["inputs"]["markdown"].replace("## ", "").strip()
    text = f"Hello,\n\n{notes}\n\nThank you for being with us.\n"
    for word in task["feedback"]:  # a human sent it back with these words
        text += f"\nP.S. {word['text']}\n"
    result = {"status": "ok", "confidence": 0.9, "outputs": {"text": text}}
    with open(os.environ["GITBUS_RESULT"], "w", encoding="utf-8") as file:
        json.dump(result, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
