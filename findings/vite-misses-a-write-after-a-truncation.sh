#!/usr/bin/env bash
# Vite 7.3.8 (its dev server, with its watcher): a file that is emptied and written a moment later, as `fs.writeFile` does it.
#
# Expected: whoever asks for the module afterwards gets what is in the file.
# Seen: a client that asks for the module as soon as Vite has announced its change gets the empty text, since that is what the file
# holds then. If the content is written within about 50 ms of the first event, Vite announces no second change, keeps the empty
# text in its cache, and serves it from then on, also to a page that is reloaded, until the next change of the file. Written
# later than that, or replaced by a rename, the new content is served.
# What follows: a reload does not mend such a page. Tools and tests that write files of a running dev server replace them by a
# rename.
#
# Needs: node 20.19 or newer, npm. Fails if what was seen changes.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo '{ "name": "site", "version": "1.0.0", "private": true, "type": "module" }' > package.json
npm install --no-save --silent --no-audit --no-fund vite@7.3.8
mkdir -p site/src
echo '<!doctype html><script type=module src=/src/main.js></script>' > site/index.html
cat > run.mjs <<'JS'
import fs from 'node:fs';
import { createServer } from 'vite';

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const file = new URL('site/src/style.css', import.meta.url).pathname;
fs.writeFileSync(new URL('site/src/main.js', import.meta.url), "import './style.css';\n");
fs.writeFileSync(file, 'body { color: red }\n');
const server = await createServer({ root: 'site', configFile: false, logLevel: 'error', server: { port: 0, host: '127.0.0.1' } });
await server.listen();
const text = async () => (await server.transformRequest('/src/style.css')).code;
// A client: it asks for the module as soon as its change has been announced.
server.watcher.on('change', () => setTimeout(() => text(), 5));

// What is served a second after a change to `color`.
async function after(color, change) {
  await server.transformRequest('/src/main.js');
  await text();
  await pause(500);
  await change(`body { color: ${color} }\n`);
  await pause(1000);
  const code = await text();
  return code.includes(color) ? 'new' : code.includes('__vite__css = ""') ? 'empty' : 'old';
}
const emptied = (ms) => async (content) => {
  fs.truncateSync(file);
  await pause(ms);
  fs.writeFileSync(file, content, { flag: 'r+' });
};
const seen = {
  'written 25 ms after it was emptied': await after('green', emptied(25)),
  'written 200 ms after it was emptied': await after('blue', emptied(200)),
  'replaced by a rename': await after('lime', async (content) => {
    fs.writeFileSync('new.css', content);
    fs.renameSync('new.css', file);
  }),
};
for (const [how, what] of Object.entries(seen)) console.log(`${how}: ${what}`);
await server.close();
process.exit(0);
JS
node run.mjs | tee seen.txt
cat > expected.txt <<'TEXT'
written 25 ms after it was emptied: empty
written 200 ms after it was emptied: new
replaced by a rename: new
TEXT
diff expected.txt seen.txt || { echo 'changed: before, it was as in the lines with <'; exit 1; }
echo 'as it was seen'
