// The seed method: recursive readdirSync + statSync with the same ignore rules. Prints the wall and CPU
// microseconds of one walk for each line on stdin, so that walks can be interleaved with those of others.
const { readdirSync, statSync } = require('node:fs');
const { join } = require('node:path');
const root = process.argv[2];
const ignored = new Set(['node_modules', 'dist', '.git', '.devtools']);
const isIgnored = (name) => ignored.has(name) || name.endsWith('.vsix') || name.endsWith('.log');

function newest(folder) {
  let latest = 0;
  for (const name of readdirSync(folder)) {
    if (isIgnored(name)) continue;
    const path = join(folder, name);
    const about = statSync(path);
    latest = Math.max(latest, about.isDirectory() ? newest(path) : about.mtimeMs);
  }
  return latest;
}

require('node:readline').createInterface({ input: process.stdin }).on('line', () => {
  const [start, used] = [process.hrtime.bigint(), process.cpuUsage()];
  newest(root);
  const wall = Number(process.hrtime.bigint() - start) / 1e3;
  const { user, system } = process.cpuUsage(used);
  console.log(wall, user + system);
});
