// An MCP server of the tests of `tether wrap`, without a library. The test edits `VERSION` and `TOOLS`.
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";

const VERSION = 1;
const TOOLS = ["version"];

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const text = (id, value) => send({ id, result: { content: [{ type: "text", text: String(value) }] } });
let level = "none";
let waiting;
let cancelled = "nothing";

const tools = {
  version: (id) => text(id, VERSION),
  level: (id) => text(id, level),
  echo: (id, params) => text(id, params.text),
  // Answers once the file is there.
  slow: (id, { file }) => {
    const timer = setInterval(() => existsSync(file) && (clearInterval(timer), text(id, VERSION)), 5);
  },
  crash: () => {
    console.error("it went wrong");
    process.exit(3);
  },
  // Never answers, unless it is cancelled.
  hang: () => {},
  cancelled: (id) => text(id, cancelled),
  // Progress of ours, then that of the client on our request, until we are told to take our request back.
  talk: (id, _, token) => {
    send({ method: "notifications/progress", params: { progressToken: token, progress: 1 } });
    waiting = id;
    send({ id: 1, method: "sampling/createMessage", params: { _meta: { progressToken: 1 } } });
  },
  // The client answers a request of ours, which has the same id in each server.
  ask: (id) => {
    waiting = id;
    send({ id: 1, method: "roots/list" });
  },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result } = JSON.parse(line);
  if (method === "initialize") {
    const capabilities = { tools: {}, logging: {} };
    send({ id, result: { protocolVersion: params.protocolVersion, capabilities, serverInfo: { name: "s", version: "1" } } });
  } else if (method === "tools/list") {
    send({ id, result: { tools: TOOLS.map((name) => ({ name, inputSchema: { type: "object" } })) } });
  } else if (method === "logging/setLevel") {
    level = params.level;
    send({ id, result: {} });
  } else if (method === "tools/call") {
    tools[params.name](id, params.arguments ?? {}, params._meta?.progressToken);
  } else if (method === "notifications/cancelled") {
    cancelled = `${params.requestId} in ${VERSION}`;
  } else if (method === "notifications/progress") {
    send({ method: "notifications/cancelled", params: { requestId: 1 } });
    text(waiting, `${VERSION} ${params.progressToken} ${params.progress}`);
  } else if (method === undefined && id === 1) {
    text(waiting, `${VERSION} ${result.roots[0].uri}`);
  }
});
