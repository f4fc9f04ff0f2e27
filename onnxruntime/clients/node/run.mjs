// Runs cases with the package onnxruntime-node: node run.mjs CASES [PROVIDER]
import fs from 'node:fs';
import path from 'node:path';
import * as ort from 'onnxruntime-node';

const [cases, provider = 'cpu'] = process.argv.slice(2);
const arrays = { float32: Float32Array, int64: BigInt64Array };

function tensor({ type, dims, data }) {
  if (type === 'string') return new ort.Tensor('string', data, dims);
  const values = type === 'int64' ? data.map(BigInt) : data;
  return new ort.Tensor(type, arrays[type].from(values), dims);
}

function compare(name, found, { type, dims, data }) {
  if (found.type !== type || String(found.dims) !== String(dims)) {
    throw new Error(`${name} is ${found.type} [${found.dims}], expected ${type} [${dims}]`);
  }
  Array.from(found.data).forEach((value, index) => {
    const wanted = data[index];
    const near = type === 'float32' ? Math.abs(value - wanted) <= 1e-4 * (1 + Math.abs(wanted)) : String(value) === String(wanted);
    if (!near) throw new Error(`${name}[${index}] is ${value}, expected ${wanted}`);
  });
}

async function run(folder) {
  const { inputs, outputs } = JSON.parse(fs.readFileSync(path.join(folder, 'case.json'), 'utf8'));
  const options = { executionProviders: [provider, 'cpu'], graphOptimizationLevel: 'all' };
  const bytes = fs.readFileSync(path.join(folder, 'model.onnx'));
  for (const source of [path.join(folder, 'model.onnx'), bytes]) {
    const session = await ort.InferenceSession.create(source, options);
    const feeds = Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, tensor(value)]));
    for (let turn = 0; turn < 3; turn++) {
      const found = await session.run(feeds);
      for (const [name, wanted] of Object.entries(outputs)) compare(name, found[name], wanted);
    }
    await session.release();
  }
}

let failed = 0;
const folders = fs.readdirSync(cases).sort();
for (const name of folders) {
  try {
    await run(path.join(cases, name));
  } catch (error) {
    failed++;
    console.error(`${name}: ${error.message}`);
  }
}
// A wrong model is an error, which does not end the program.
await ort.InferenceSession.create(Buffer.from('no model')).then(
  () => { failed++; console.error('bytes that are no model open'); },
  () => {},
);
console.log(`onnxruntime-node ${ort.env.versions.node}, ${provider}: ${folders.length - failed} passed, ${failed} failed`);
process.exit(failed || folders.length === 0 ? 1 : 0);
