#!PYTHON -I
"""An ``exec`` transport for tests: it writes what it was to send into a folder."""

import json
import os
import pathlib
import sys

request = json.loads(sys.stdin.readline())
folder = pathlib.Path(sys.argv[1])
verb, mode = request["verb"], (folder / "mode").read_text() if (folder / "mode").exists() else ""
(folder / "environment").write_text(json.dumps(sorted(os.environ)))
if verb == "describe":
    print(json.dumps({"description": {"protocol": 1, "name": "folder"}}))
elif verb == "check":
    if mode == "unusable":
        print(
            json.dumps({"unusable": {"message": "the key is " + os.environ["NEWS_PASSWORD"], "rule": "test"}})
        )
    else:
        print(json.dumps({"identity": {"channel": "lies", "host": "folder", "authenticated_as": "me"}}))
elif mode.startswith("run "):
    exec(mode[4:])
else:
    outgoing = request["outgoing"]
    number = len(list(folder.glob("sent-*")))
    (folder / f"sent-{number}").write_text(json.dumps(outgoing))
    people = outgoing["message"]["to"] + outgoing["message"]["cc"] + outgoing["message"]["bcc"]
    answer = {
        "outcome": "sent",
        "reason": "written",
        "recipients": dict.fromkeys(people, "written"),
        "message_id": f"<{outgoing['idempotency_key']}@acme.example>",
        "provider_id": f"sent-{number}",
    }
    print(json.dumps({"answer": answer}))
