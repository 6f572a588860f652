// A small HTTP service without dependencies: greets, and counts whom it greeted.
'use strict';

const { createServer } = require('node:http');

const greeted = new Map();

function greet(name) {
  const times = (greeted.get(name) ?? 0) + 1;
  greeted.set(name, times);
  return { greeting: `Hello, ${name}!`, times };
}

const server = createServer((request, response) => {
  const [path] = request.url.split('?');
  const [, verb, name] = path.split('/');
  if (verb !== 'hello' || !name) {
    response.writeHead(404, { 'content-type': 'text/plain' }).end('try /hello/ada\n');
    return;
  }
  const answer = greet(name);
  console.log(`greeted ${name} (${answer.times})`);
  response.writeHead(200, { 'content-type': 'application/json' }).end(`${JSON.stringify(answer)}\n`);
});

server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`up on http://127.0.0.1:${server.address().port}/`);
});

// Reachable from `tether` as `service`.
globalThis.service = { greet, greeted, server };
