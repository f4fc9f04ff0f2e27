// Classifies the 360 held-out images of handwritten digits.
//
//     node digits.mjs [MODEL [IMAGES]]
//
// Exit codes: 0 when at least 97 % are right, 1 when fewer are.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { Session, Tensor } from "rukh";

const folder = new URL("../../../examples/digits/", import.meta.url);
const [model, images] = ["digits.onnx", "heldout.bin"].map(
  (name, index) => process.argv[2 + index] ?? fileURLToPath(new URL(name, folder)),
);

// Three little-endian 32-bit numbers (count, height, width), the pixels from 0 to 16, the labels.
const bytes = readFileSync(images);
const [count, height, width] = [0, 4, 8].map((offset) => bytes.readUInt32LE(offset));
const pixels = bytes.subarray(12, 12 + count * height * width);
const labels = bytes.subarray(12 + pixels.length);

const session = await Session.open(model);
const image = new Tensor(Float32Array.from(pixels), [count, 1, height, width]);
const { scores } = await session.run({ image });
const [, classes] = scores.shape;

let right = 0;
for (let i = 0; i < count; i += 1) {
  const row = scores.data.subarray(i * classes, (i + 1) * classes);
  right += Number(row.indexOf(Math.max(...row)) === labels[i]);
}
console.log(`${right} of ${count} right: ${((100 * right) / count).toFixed(2)} %`);
process.exitCode = right * 100 >= count * 97 ? 0 : 1;
