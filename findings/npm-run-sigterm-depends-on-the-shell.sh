#!/usr/bin/env bash
# npm 11.6.2, npm 10.9.4 and pnpm 10.20.0: whether SIGTERM to `npm run dev` reaches the script depends on the shell.
#
# Expected: the runner passes SIGTERM on, the script's handler runs, and the runner exits after it.
# Seen: all three run the script as `<script-shell> -c "node server.js"` and send the signal to that shell only.
#   bash replaces itself by the last command (`sh` is gone from the process tree), so node gets SIGTERM, closes in its own time, and
#     the runner exits with the script's code, 0.
#   dash (/bin/sh on Debian and Ubuntu) does not replace itself and does not forward: it dies, the runner exits within
#     milliseconds, and node runs on without ever having had a SIGTERM, as an orphan that holds its port.
# So the end of `npm run` says nothing about the end of what it ran: a supervisor must find and end the script itself.
#
# Needs: node (20 or newer), npm, bash, dash. Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill -9 "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"

cat > package.json <<'JSON'
{ "name": "example", "version": "1.0.0", "private": true, "scripts": { "dev": "node server.js" } }
JSON
cat > server.js <<'JS'
process.on('SIGTERM', () => { console.log('SIGTERM'); setTimeout(() => process.exit(0), 1000); });
setInterval(() => {}, 1000);
console.log(`up ${process.pid}`);
JS
npm install --no-save --silent --no-audit --no-fund npm-11@npm:npm@11.6.2 npm-10@npm:npm@10.9.4 pnpm@10.20.0

failed=0
# check NAME SHELL EXPECTED COMMAND...: runs the script, signals the runner, and compares what happened.
check() {
    local name=$1 shell=$2 expected=$3 runner code=0 alive=ended
    shift 3
    : > "$name-$shell.txt"
    npm_config_script_shell=$(command -v "$shell") "$@" > "$name-$shell.txt" 2>&1 &
    runner=$!
    for _ in $(seq 300); do grep -q '^up' "$name-$shell.txt" && break; sleep 0.1; done
    server=$(sed -n 's/^up \([0-9]*\)$/\1/p' "$name-$shell.txt")
    kill -TERM "$runner"
    wait "$runner" || code=$?
    kill -0 "$server" 2>/dev/null && alive=runs
    local seen="runner exits with $code, script $alive, SIGTERMs in script: $(grep -c SIGTERM "$name-$shell.txt" || true)"
    kill -9 "$server" 2>/dev/null || true
    server=
    echo "$name with $shell: $seen"
    [ "$seen" = "$expected" ] || { echo "  expected: $expected"; failed=1; }
}

for name in npm-11 npm-10 pnpm; do
    case $name in
        pnpm) command=(node node_modules/pnpm/bin/pnpm.cjs run dev) ;;
        *) command=(node "node_modules/$name/bin/npm-cli.js" run dev) ;;
    esac
    check "$name" bash "runner exits with 0, script ended, SIGTERMs in script: 1" "${command[@]}"
    check "$name" dash "runner exits with 143, script runs, SIGTERMs in script: 0" "${command[@]}"
done
exit "$failed"
