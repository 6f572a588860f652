#!/usr/bin/env python3
"""A scripted netcoredbg: the protocol of a native adapter on stdio, and a report of how it was started."""
import json
import sys


def read():
    length = 0
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if not line.strip():
            break
        name, value = line.decode().split(":")
        if name.lower() == "content-length":
            length = int(value)
    return json.loads(sys.stdin.buffer.read(length))


def send(message):
    body = json.dumps({"seq": 1, **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def event(name, body):
    send({"type": "event", "event": name, "body": body})


while True:
    request = read()
    command, arguments = request["command"], request.get("arguments")

    def respond(body=None):
        response = {"request_seq": request["seq"], "command": command, "success": True}
        send({"type": "response", **response, "body": body or {}})

    if command == "initialize":
        respond({"supportsConfigurationDoneRequest": True})
    elif command in ("launch", "attach"):
        report = {"argv": sys.argv[1:], "command": command, "arguments": arguments}
        event("output", {"category": "console", "output": json.dumps(report)})
        event("initialized", {})
        respond()
    elif command == "exit":
        respond()
        sys.exit(int(arguments["code"]))
    elif command == "disconnect":
        respond()
        sys.exit(0)
    else:
        respond({"echo": arguments})
