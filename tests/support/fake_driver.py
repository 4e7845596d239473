"""A program that speaks the protocol of drivers, without a client: its argument is its message to each command."""

import json
import sys

print(json.dumps({"ready": {"callbacks": ["assigned"]}}), flush=True)
for line in sys.stdin:
    command = json.loads(line)
    print(sys.argv[1].replace("ID", str(command["id"])), flush=True)
    if command["do"] == "close":
        break
