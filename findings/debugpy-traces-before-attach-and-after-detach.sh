#!/usr/bin/env bash
# debugpy 1.8.22 on CPython 3.11: a program that only listens for a debugger is traced, before the first client and after the last.
#
# Expected: `python -m debugpy --listen PORT app.py` costs little until somebody attaches, and again after `disconnect`.
# Seen: sys.gettrace() is set from the program's first line, and stays set after `disconnect` with terminateDebuggee false. A loop
#   of plain function calls takes 8 times as long as without debugpy, the generator below 40 times: alike before the attach,
#   while attached without a breakpoint, and after the detach. Only a restart of the program gives the speed back.
# (From 3.12 on debugpy uses sys.monitoring instead of a trace function; this is about 3.11 and older.)
#
# Needs: python3.11 with venv. Fails if what was seen changes.
set -euo pipefail

python=$(command -v python3.11)
folder=$(mktemp -d)
program=
trap '[ -z "$program" ] || kill "$program" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
"$python" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check debugpy==1.8.22

cat > app.py <<'PY'
import sys, time

def low_bits(value):
    return value & 3

def work():
    return sum(low_bits(value) for value in range(50_000))

while True:
    began = time.process_time()
    work()
    print(f"{time.monotonic()} {(time.process_time() - began) * 1000:.1f} {sys.gettrace() is not None}", flush=True)
    time.sleep(0.02)
PY

cat > measure.py <<'PY'
import json, socket, statistics, subprocess, sys, time

class Client:
    """A DAP client: one request at a time, or until an event."""
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.stream, self.sequence = self.socket.makefile("rb"), 0
    def send(self, command, **arguments):
        self.sequence += 1
        body = json.dumps({"seq": self.sequence, "type": "request", "command": command, "arguments": arguments}).encode()
        self.socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    def until(self, **wanted):
        while True:
            length = 0
            while (line := self.stream.readline()) != b"\r\n":
                assert line, "the adapter has closed the connection"
                length = int(line.split(b":")[1]) if line.startswith(b"Content-Length") else length
            message = json.loads(self.stream.read(length))
            if all(message.get(key) == value for key, value in wanted.items()):
                return message

def rounds(program, count=7):
    """The median of the next rounds, in ms of processor time, and whether a trace function is set."""
    asked, lines = time.monotonic(), []
    while len(lines) < count:
        line = program.stdout.readline().split()
        lines += [line] if float(line[0]) > asked + 0.5 else []
    return statistics.median(float(line[1]) for line in lines), lines[-1][2] == "True"

def start(*options):
    return subprocess.Popen([sys.executable, *options, "app.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
plain, traced = start(), start("-Xfrozen_modules=off", "-m", "debugpy", "--listen", f"127.0.0.1:{port}")
try:
    seen = {"without debugpy": rounds(plain), "before the attach": rounds(traced)}
    client = Client(port)
    client.send("initialize", adapterID="example")
    client.until(command="initialize")
    client.send("attach", justMyCode=True)
    client.until(event="initialized")
    client.send("configurationDone")
    client.until(command="attach")
    seen["while attached"] = rounds(traced)
    client.send("disconnect", terminateDebuggee=False)
    client.until(command="disconnect", success=True)
    seen["after the detach"] = rounds(traced)
finally:
    for program in plain, traced:
        program.kill()
        program.wait()

base = seen["without debugpy"][0]
for moment, (took, is_traced) in seen.items():
    print(f"{moment:18} {took:6.1f} ms, {took / base:4.1f} x, trace function set: {is_traced}")
    assert is_traced == (moment != "without debugpy"), "the trace function is not as it was"
    assert moment == "without debugpy" or took > 3 * base, "it is no longer slow"
PY
timeout 180 venv/bin/python measure.py
