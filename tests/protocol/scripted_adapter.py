#!/usr/bin/env python3
# An adapter that misbehaves in the way that the first word of its program says. It is started as Python would be, with
# debugpy's own arguments, and dials whom it is told to.
import json
import os
import signal
import socket
import sys

address = sys.argv[sys.argv.index("--connect") + 1]
how = open(sys.argv[-1]).read().split()[0]

if how == "exits":
    print("ImportError: no module named xdbg", file=sys.stderr, flush=True)
    sys.exit(3)

host, port = address.rsplit(":", 1)
wire = socket.create_connection((host, int(port)))
stream = wire.makefile("rb")


def say(message):
    body = json.dumps({"seq": 1, **message}).encode()
    wire.sendall(b"Content-Length: %d\r\n\r\n" % len(body) + body)


def answer(request, body=None, **more):
    say({"type": "response", "request_seq": request["seq"], "command": request["command"], "success": True,
         "body": body or {}, **more})


def event(name, **body):
    say({"type": "event", "event": name, "body": body})


def stop():
    event("stopped", reason="step", threadId=1, allThreadsStopped=True)


def heard():
    while True:
        header = stream.readline()
        if not header:
            # Nobody is left to talk to: it lives on, as a program does, until it is ended.
            signal.pause()
        stream.readline()
        yield json.loads(stream.read(int(header.split(b":")[1])))


frame = {"id": 1, "name": "main", "line": 1, "column": 1}
told = {
    "initialize": {"supportsConfigurationDoneRequest": True},
    "threads": {"threads": [{"id": 1, "name": "main"}]},
    "stackTrace": {"stackFrames": [frame], "totalFrames": 1},
    "scopes": {"scopes": []},
    "setBreakpoints": {"breakpoints": []},
}
launch = None
set_breakpoints = 0
total = "1"
if how in ("lldb-19", "no-watchpoints"):
    # As Debian's lldb-dap-19 answers; without hardware watchpoints every lldb-dap refuses with these words.
    told["initialize"].update({"supportsSetVariable": True, "supportsDataBreakpoints": True})
    told["scopes"] = {"scopes": [{"name": "Locals", "variablesReference": 1, "expensive": False}]}
    told["dataBreakpointInfo"] = {"dataId": "1/4", "description": "4 bytes", "accessTypes": ["write"]}
    refused = {"verified": False, "message": "Setting one of the watchpoint resources failed"}
    told["setDataBreakpoints"] = {"breakpoints": [{"verified": True} if how == "lldb-19" else refused]}
for request in heard():
    command = request["command"]
    if how == "silent" or (how == "mute" and command == "disconnect"):
        continue
    elif command == "launch":
        launch = request
        event("initialized")
        if how == "twice":
            event("initialized")
    elif command == "configurationDone":
        answer(request)
        answer(launch)
        answer(launch)
        stop()
    elif command == "evaluate" and how == "floods":
        # More threads than the ring of events holds, and more output in bytes than the ring of output.
        for number in range(6_000):
            event("output", category="stdout", output="number %d %s\n" % (number, 1_000 * "x"))
            event("loadedSource", reason="new", source={"path": "/%d" % number})
            event("thread", reason="started", threadId=number)
            event("custom", number=number)
        answer(request, {"result": "answered", "variablesReference": 0})
    elif command == "evaluate" and how == "garbage":
        wire.sendall(b"Traceback (most recent call last):\r\n\r\n")
    elif command == "evaluate" and how == "dies":
        print("Segmentation fault in xdbg", file=sys.stderr, flush=True)
        os._exit(7)
    elif command == "evaluate" and how == "half":
        wire.sendall(b'Content-Length: 100\r\n\r\n{"seq":')
        wire.shutdown(socket.SHUT_WR)
    elif command == "next" and how == "refuses":
        answer(request, {"error": {"id": 1, "format": "there is nothing to step in"}}, success=False)
    elif command == "setVariable" and request["arguments"]["value"] == "no number":
        answer(request, {"message": "'no number' is not a valid integer"}, success=False)
    elif command == "setVariable":
        total = request["arguments"]["value"]
        answer(request, {"result": total, "type": "int", "variablesReference": 0})
    elif command == "variables":
        answer(request, {"variables": [{"name": "total", "value": total, "type": "int", "variablesReference": 0}]})
    elif command == "evaluate" and how == "lldb-19":
        answer(request, {"result": total, "variablesReference": 0})
    elif command == "continue" and how == "lldb-19":
        total = "9"
        answer(request)
        event("stopped", reason="breakpoint", description="watchpoint 1", threadId=1, allThreadsStopped=True)
    elif command == "evaluate" and how == "twice":
        answer(request, {"result": str(set_breakpoints), "variablesReference": 0})
        say({"type": "response", "request_seq": 9999, "command": "evaluate", "success": True, "body": {"result": "x"}})
        answer(request, {"result": "a second time", "variablesReference": 0})
    else:
        set_breakpoints += command == "setBreakpoints"
        answer(request, told.get(command))
