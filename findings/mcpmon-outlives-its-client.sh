#!/usr/bin/env bash
# mcpmon 1.0.1 (PyPI): the client of a reloaded MCP server leaves.
#
# Expected: a proxy in front of an MCP server on stdio ends when its client closes stdin, as the specification has servers do, and with it
# the server.
# Seen: the proxy and the server run on; 5 s after the client has left, both are there.
# What follows: who starts it must end it. A client that only closes the pipe leaves two processes behind for each session.
#
# Needs: python3 with pip and venv. Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv environment
environment/bin/pip install --quiet mcpmon==1.0.1

cat > server.py <<'PY'
import os, sys

print(os.getpid(), file=open("pid", "w"), flush=True)
for line in sys.stdin:
    print('{"jsonrpc": "2.0", "id": 0, "result": {}}', flush=True)
PY

cat > client.py <<'PY'
import os, subprocess, sys

command = ["environment/bin/mcpmon", "--quiet", "--watch", ".", "--", sys.executable, "server.py"]
proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
try:
    proxy.stdin.write('{"jsonrpc": "2.0", "id": 0, "method": "ping"}\n')
    proxy.stdin.flush()
    assert '"id": 0' in proxy.stdout.readline()
    server = int(open("pid").read())
    proxy.stdin.close()
    try:
        proxy.wait(timeout=5)
        raise SystemExit("it has ended")
    except subprocess.TimeoutExpired:
        os.kill(server, 0)
        print("5 s after its client has left, mcpmon and its server run on")
finally:
    proxy.terminate()
    try:
        proxy.wait(timeout=10)
    except subprocess.TimeoutExpired:
        proxy.kill()
PY
python3 client.py
