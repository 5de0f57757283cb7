"""Drive a session from a program: two requests in one conversation, approvals decided by a rule of your own.

mkdir /tmp/app && echo "port = 8080" > /tmp/app/config.ini
python examples/drive_session.py -C /tmp/app --model script:examples/follow-up.jsonl
"""

import json
import subprocess
import sys

STREAMS = ["--input-format", "stream-json", "--output-format", "stream-json"]
PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}

with subprocess.Popen(["agent", "run", *STREAMS, *sys.argv[1:]], **PIPES) as agent:

    def send(**command):
        print(json.dumps(command), file=agent.stdin, flush=True)

    send(type="request", text="read the port in config.ini")
    send(type="request", text="change it to 9090")
    send(type="end")
    for event in map(json.loads, agent.stdout):
        if event["type"] == "approval.requested" and not event.get("decided"):
            decision = "allow" if event["command"] == "config.ini" else "deny"
            send(type="approve", approval_id=event["approval_id"], decision=decision)
        elif event["type"] == "result":
            print(event["subtype"], event["result"], sep=": ")
sys.exit(agent.returncode)
