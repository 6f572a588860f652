const fs = require('node:fs');
const { Worker, isMainThread, parentPort } = require('node:worker_threads');

function count(total) {
  for (let n = 0; n < 100_000_000; n++) {
    total += n % 7; // BREAK
  }
  return total;
}

if (!isMainThread) {
  parentPort.postMessage('up');
  parentPort.on('message', (at) => parentPort.postMessage(count(at)));
} else {
  const answer = (worker) => new Promise((come) => worker.once('message', come));
  const workers = [1, 2, 3].map(() => new Worker(__filename));
  const run = async () => {
    const before = process.cpuUsage();
    const counted = workers.map(answer);
    workers.forEach((worker, at) => worker.postMessage(at));
    count(3);
    await Promise.all(counted);
    const { user, system } = process.cpuUsage(before);
    console.log((user + system) / 1000);
    process.exit();
  };
  const wait = () => (fs.existsSync('go') ? run() : setTimeout(wait, 20));
  Promise.all(workers.map(answer)).then(() => (console.log('up'), wait()));
}
