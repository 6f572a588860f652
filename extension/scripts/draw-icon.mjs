// Draws media/icon.png: a window, and the line that holds it. Distances to shapes, blended at the edges; no dependency.
import { writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";

const SIZE = 256;
const background = [17, 33, 45];
const frame = [127, 209, 185];
const line = [255, 196, 92];
const glass = [30, 58, 76];

const length = (x, y) => Math.hypot(x, y);
const roundedBox = (x, y, cx, cy, w, h, r) => {
  const [dx, dy] = [Math.abs(x - cx) - w / 2 + r, Math.abs(y - cy) - h / 2 + r];
  return length(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - r;
};
/** The distance to the curve from the window's corner to the anchor, by samples of a cubic. */
const curve = Array.from({ length: 120 }, (_, at) => {
  const t = at / 119;
  const point = (a, b, c, d) => (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
  return [point(128, 128, 70, 72), point(158, 226, 178, 206)];
});
const toCurve = (x, y) => Math.min(...curve.map(([px, py]) => length(x - px, y - py)));

/** The shapes from back to front: a colour, and the distance to the shape (negative: inside). */
const shapes = [
  [background, (x, y) => roundedBox(x, y, 128, 128, 240, 240, 46)],
  [frame, (x, y) => roundedBox(x, y, 138, 98, 166, 118, 16)],
  [glass, (x, y) => roundedBox(x, y, 138, 108, 144, 76, 6)],
  [background, (x, y) => length(x - 76, y - 55) - 5.5],
  [background, (x, y) => length(x - 95, y - 55) - 5.5],
  [background, (x, y) => length(x - 114, y - 55) - 5.5],
  [background, (x, y) => toCurve(x, y) - 13],
  [line, (x, y) => toCurve(x, y) - 7.5],
  [background, (x, y) => length(x - 72, y - 206) - 24],
  [line, (x, y) => length(x - 72, y - 206) - 18],
  [background, (x, y) => length(x - 72, y - 206) - 7],
  [line, (x, y) => length(x - 128, y - 158) - 13],
];

const rows = [];
for (let y = 0; y < SIZE; y++) {
  const row = Buffer.alloc(1 + SIZE * 4);
  for (let x = 0; x < SIZE; x++) {
    let [red, green, blue, alpha] = [0, 0, 0, 0];
    for (const [colour, distance] of shapes) {
      const cover = Math.min(1, Math.max(0, 0.5 - distance(x + 0.5, y + 0.5)));
      const sum = cover + alpha * (1 - cover);
      const mix = (top, below) => (sum === 0 ? 0 : (top * cover + below * alpha * (1 - cover)) / sum);
      [red, green, blue, alpha] = [mix(colour[0], red), mix(colour[1], green), mix(colour[2], blue), sum];
    }
    row.set([red, green, blue, alpha * 255].map(Math.round), 1 + x * 4);
  }
  rows.push(row);
}

const crcTable = Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) {
    c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  }
  return c >>> 0;
});
const crc = (bytes) => (bytes.reduce((c, byte) => crcTable[(c ^ byte) & 255] ^ (c >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;
const chunk = (type, data) => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const [size, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  size.writeUInt32BE(data.length);
  sum.writeUInt32BE(crc(body));
  return Buffer.concat([size, body, sum]);
};
const header = Buffer.alloc(13);
header.writeUInt32BE(SIZE, 0);
header.writeUInt32BE(SIZE, 4);
header.set([8, 6], 8);
const png = [
  Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
  chunk("IHDR", header),
  chunk("IDAT", deflateSync(Buffer.concat(rows), { level: 9 })),
  chunk("IEND", Buffer.alloc(0)),
];
writeFileSync(new URL("../media/icon.png", import.meta.url), Buffer.concat(png));
