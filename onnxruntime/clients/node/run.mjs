// Runs cases with the package onnxruntime-node: node run.mjs CASES [PROVIDER]
import fs from 'node:fs';
import path from 'node:path';
import * as ort from 'onnxruntime-node';

const [cases, provider = 'cpu'] = process.argv.slice(2);
const arrays = { float32: Float32Array, int64: BigInt64Array };

// A case as cases.py writes it.
function readCase(folder) {
  const found = { strict: false, input: {}, output: {} };
  for (const line of fs.readFileSync(path.join(folder, 'tensors.txt'), 'utf8').trim().split('\n')) {
    const [role, name, type, tolerance, file, ...dims] = line.split(' ');
    if (role === 'strict') {
      found.strict = true;
    } else {
      const bytes = fs.readFileSync(path.join(folder, file));
      const data = type === 'string' ? bytes.toString('utf8').split('\0').slice(0, -1)
        : new arrays[type](new Uint8Array(bytes).buffer);
      found[role][name] = { type, tolerance: Number(tolerance), dims: dims.map(Number), data };
    }
  }
  if (Object.keys(found.output).length === 0) throw new Error('no outputs in tensors.txt');
  return found;
}

function compare(name, found, { type, tolerance, dims, data }) {
  if (found.type !== type || String(found.dims) !== String(dims) || found.data.length !== data.length) {
    throw new Error(`${name} is ${found.type} [${found.dims}], expected ${type} [${dims}]`);
  }
  data.forEach((wanted, index) => {
    const value = found.data[index];
    const near = type === 'float32' ? Math.abs(value - wanted) <= tolerance : value === wanted;
    if (!near) throw new Error(`${name}[${index}] is ${value}, expected ${wanted}`);
  });
}

async function run(folder) {
  const { strict, input, output } = readCase(folder);
  // Where nothing may be left to the CPU, it is not in the list either.
  const only = strict && provider !== 'cpu';
  const options = {
    executionProviders: only ? [provider] : [provider, 'cpu'],
    graphOptimizationLevel: 'all',
    extra: { session: { disable_cpu_ep_fallback: only ? '1' : '0' } },
  };
  const bytes = fs.readFileSync(path.join(folder, 'model.onnx'));
  for (const source of [path.join(folder, 'model.onnx'), bytes]) {
    const session = await ort.InferenceSession.create(source, options);
    const feeds = Object.fromEntries(
      Object.entries(input).map(([name, { type, data, dims }]) => [name, new ort.Tensor(type, data, dims)]),
    );
    for (let turn = 0; turn < 3; turn++) {
      const found = await session.run(feeds);
      for (const [name, wanted] of Object.entries(output)) compare(name, found[name], wanted);
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
