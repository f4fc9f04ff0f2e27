import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Adapter, RukhError, Session, Tensor } from "rukh";

import { digits, file, model } from "./files.js";

// A file that ONNX Runtime wrote, for the model "adapted", y = x W + x A B + b: A and B, for which x A B is 2.
const adapter = file("onnxruntime/tests/models/adapted.onnx_adapter");

/** What y exceeds x W by, for ones. */
async function added(session, adapters) {
  const { y } = await session.run({ x: new Tensor(new Float32Array(4).fill(1), [1, 4]) }, { adapters });
  const found = Array.from(y.data, (value, index) => value - [18, 22, 26][index]);
  assert.deepEqual(found, [found[0], found[0], found[0]]);
  return found[0];
}

const bias = (value) => new Adapter({ b: new Tensor(new Float32Array(3).fill(value)) });

const failsWith = (code, message) => (error) => {
  assert.ok(error instanceof RukhError, String(error));
  assert.equal(error.code, `RUKH_ERROR_${code}`);
  assert.match(error.message, message);
  return true;
};

test("runs and sessions take adapters", async () => {
  const plain = await Session.open(model("adapted"));
  const lora = Adapter.open(adapter);
  const folder = mkdtempSync(join(tmpdir(), "rukh-"));
  try {
    const path = join(folder, "saved.onnx_adapter");
    bias(5).save(path);
    const five = Adapter.open(path);
    for (const [adapters, wanted] of [
      [undefined, 0],
      [[lora], 2],
      [[lora, five], 7],
      [[five, bias(7)], 7],
      [[], 0],
    ]) {
      assert.equal(await added(plain, adapters), wanted);
      const session = await Session.open(model("adapted"), { adapters });
      assert.equal(await added(session), wanted);
      session.dispose();
    }
    // The session keeps what it needs.
    const session = await Session.open(model("adapted"), { adapters: [lora] });
    lora.dispose();
    assert.equal(await added(session, [five]), 7);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("an adapter tells what is in it", () => {
  const { lora_a: a, lora_b: b, ...others } = Adapter.open(adapter).tensors;
  assert.deepEqual([a.shape, b.shape, b.data[0], others], [[4, 2], [2, 3], 0.25, {}]);
});

test("failures of adapters say what is wrong", async () => {
  const session = await Session.open(digits);
  const image = new Tensor(new Float32Array(64), [1, 1, 8, 8]);
  const [lora, disposed] = [Adapter.open(adapter), bias(1)];
  disposed.dispose();
  assert.throws(() => Adapter.open("none.onnx_adapter"), failsWith("NOT_FOUND", /none\.onnx_adapter/));
  assert.throws(() => Adapter.open(digits), failsWith("INVALID_MODEL", /digits\.onnx/));
  assert.throws(() => new Adapter({ b: [1] }), failsWith("INVALID_ARGUMENT", /b is Array; a Tensor is needed/));
  for (const [given, code, message] of [
    [null, "INVALID_ARGUMENT", /null was given/],
    [adapter, "INVALID_ARGUMENT", /String was given/],
    [disposed, "INVALID_HANDLE", /Adapter was disposed/],
    [lora, "NOT_FOUND", /lora_/],
  ]) {
    await assert.rejects(() => session.run({ image }, { adapters: [given] }), failsWith(code, message));
    await assert.rejects(() => Session.open(digits, { adapters: [given] }), failsWith(code, message));
  }
});
