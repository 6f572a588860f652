// The conformance suite of MCP's own project: against `tether mcp --http`, and through `tether wrap` against a server of the official
// SDK. CONFORMANCE is the folder of the suite's packages, TETHER the program.
//
// The suite speaks HTTP and sends no token: in between is a relay that adds the token, and for `wrap` one that makes lines of it.
import assert from "node:assert";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";

const { CONFORMANCE, TETHER } = process.env;
const sdk = (module) => import(`${CONFORMANCE}/@modelcontextprotocol/sdk/dist/esm/${module}.js`);
const home = mkdtempSync(join(tmpdir(), "conformance-"));
const workspace = join(home, "workspace");
const folders = Object.fromEntries(["RUNTIME_DIR", "STATE_HOME", "CONFIG_HOME", "CACHE_HOME"].map((name) => [`XDG_${name}`, join(home, name)]));
const env = { ...process.env, ...folders };
[workspace, ...Object.values(folders)].forEach((folder) => mkdirSync(folder, { mode: 0o700 }));
const closing = [];
after(async () => {
  for (const close of closing.reverse()) await close();
  await exited(spawn(TETHER, ["shutdown", "--all"], { cwd: workspace, env }));
  rmSync(home, { recursive: true, force: true });
});

const exited = (child) => new Promise((resolve) => child.on("exit", resolve));

/** Serves on a free port; returns the URL. */
async function listen(handle) {
  const server = createServer(handle);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => (server.closeAllConnections(), new Promise((resolve) => server.close(resolve))));
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

/** Runs the suite; the scenarios that are listed must fail, and all others pass. */
async function runSuite(url, expected) {
  const main = `${CONFORMANCE}/@modelcontextprotocol/conformance/dist/index.js`;
  const file = new URL(expected, import.meta.url).pathname;
  const suite = spawn(process.execPath, [main, "server", "--url", url, "--expected-failures", file, "-o", join(home, "results")], { cwd: home });
  let output = "";
  for (const stream of [suite.stdout, suite.stderr]) stream.on("data", (data) => (output += data));
  assert.strictEqual(await exited(suite), 0, output);
}

test("tether mcp --http", async () => {
  const served = spawn(TETHER, ["mcp", "--http", "--json"], { cwd: workspace, env, stdio: ["ignore", "pipe", "inherit"] });
  closing.push(() => (served.kill(), exited(served)));
  const line = await new Promise((resolve) => createInterface({ input: served.stdout }).once("line", resolve));
  const { url, token } = JSON.parse(line);
  const { port } = new URL(url);
  const relay = await listen((incoming, outgoing) => {
    // Its host is that of the server, unless it claims another.
    const host = incoming.headers.host.replace(/^(127\.0\.0\.1|localhost):\d+$/, `$1:${port}`);
    const headers = { ...incoming.headers, host, authorization: `Bearer ${token}` };
    const { method, url: path } = incoming;
    const forwarded = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      outgoing.flushHeaders();
      answer.pipe(outgoing);
    });
    forwarded.on("error", () => outgoing.destroy());
    outgoing.on("close", () => forwarded.destroy());
    incoming.pipe(forwarded);
  });
  await runSuite(relay, "conformance_mcp.yml");
});

/** Sessions over HTTP, each with a process of its own. */
async function relayToStdio(command, args) {
  const [{ StreamableHTTPServerTransport }, { StdioClientTransport }] = await Promise.all(["server/streamableHttp", "client/stdio"].map(sdk));
  const sessions = new Map();
  let url;
  const open = async () => {
    const stdio = new StdioClientTransport({ command, args, cwd: workspace, env: { ...env, CONFORMANCE } });
    const { host } = new URL(url);
    const http = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, http),
      enableDnsRebindingProtection: true,
      allowedHosts: [host, host.replace("127.0.0.1", "localhost")],
    });
    // What a server says during a call goes with the answer of the newest one.
    let newest;
    http.onmessage = (message) => {
      newest = message.id !== undefined && message.method ? message.id : newest;
      stdio.send(message);
    };
    stdio.onmessage = (message) => http.send(message, { relatedRequestId: message.method ? newest : undefined }).catch(() => {});
    closing.push(async () => (await http.close(), stdio.close()));
    await stdio.start();
    await http.start();
    return http;
  };
  url = await listen(async (incoming, outgoing) => {
    const session = sessions.get(incoming.headers["mcp-session-id"]) ?? (await open());
    await session.handleRequest(incoming, outgoing);
  });
  return url;
}

const server = [process.execPath, new URL("conformance_server.mjs", import.meta.url).pathname];

// What fails here is the fault of the server or the relay.
test("the server alone", async () => {
  await runSuite(await relayToStdio(server[0], server.slice(1)), "conformance_wrap.yml");
});

test("the same server through tether wrap", async () => {
  writeFileSync(join(workspace, "source.txt"), "1");
  await runSuite(await relayToStdio(TETHER, ["wrap", "--", ...server]), "conformance_wrap.yml");
});
