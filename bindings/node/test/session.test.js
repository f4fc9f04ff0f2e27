import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Environment, RukhError, Session, Tensor } from "rukh";

import { digits, model } from "./files.js";

const image = () => new Tensor(new Float32Array(64), [1, 1, 8, 8]);
const failsWith = (code, message) => (error) => {
  assert.ok(error instanceof RukhError, String(error));
  assert.equal(error.code, `RUKH_ERROR_${code}`);
  assert.match(error.message, message);
  return true;
};

test("a session tells of its inputs, outputs and model", async () => {
  const session = await Session.open(digits);
  assert.deepEqual(session.inputs, [{ name: "image", type: "tensor(float)", shape: [null, 1, 8, 8] }]);
  assert.deepEqual(session.outputs, [{ name: "scores", type: "tensor(float)", shape: [null, 10] }]);
  assert.equal(session.metadata.producerName, "pytorch");
  assert.equal(session.metadata.graphName, "main_graph");
});

test("a model runs, from its file and from its bytes, and overlapping runs do not disturb each other", async () => {
  const sum = await Session.open(model("add"));
  const same = await Session.open(readFileSync(model("add")));
  assert.deepEqual(sum.inputs.map((port) => port.name), ["a", "b"]);
  const of = (value) => new Tensor(new Float32Array(6).fill(value), [6]);
  const runs = Array.from({ length: 40 }, (_, i) => (i % 2 ? sum : same).run({ a: of(i), b: of(2) }));
  for (const [i, found] of (await Promise.all(runs)).entries()) {
    assert.deepEqual(found.sum.shape, [6]);
    assert.deepEqual(found.sum.data, new Float32Array(6).fill(i + 2));
    assert.deepEqual(found.product.data, new Float32Array(6).fill(i * 2));
  }
});

test("only the outputs that are named come", async () => {
  const session = await Session.open(model("add"));
  const one = new Tensor(Float32Array.of(1, 2, 3, 4, 5, 6), [6]);
  const found = await session.run({ a: one, b: one }, { outputs: ["product"] });
  assert.deepEqual(Object.keys(found), ["product"]);
  assert.deepEqual([...found.product.data], [1, 4, 9, 16, 25, 36]);
});

test("an output goes into the next run as it is", async () => {
  const session = await Session.open(model("add"));
  const one = new Tensor(new Float32Array(6).fill(1), [6]);
  let current = one;
  for (let i = 0; i < 5; i += 1) {
    current = (await session.run({ a: current, b: one }, { outputs: ["sum"] })).sum;
  }
  assert.deepEqual(current.data, new Float32Array(6).fill(6));
});

test("sequences are arrays", async () => {
  const session = await Session.open(model("sequence"));
  const types = Object.fromEntries(session.inputs.map((port) => [port.name, port.type]));
  assert.equal(types.list, "seq(tensor(float))");
  const [a, b, c] = [1, 2, 3].map((value) => new Tensor(Float32Array.of(value), [1]));
  const found = await session.run({ a, b, list: [a, b, c], i: new Tensor("int64", [2], []) });
  assert.deepEqual(found.pair.map((item) => item.data[0]), [1, 2]);
  assert.deepEqual([...found.item.data], [3]);
});

test("strings come and go", async () => {
  const session = await Session.open(model("strings"));
  const words = ["", "ü", "a\0b", "a long word ".repeat(60)];
  const shape = session.inputs[0].shape.map((size, axis) => size ?? (axis === 0 ? words.length : 1));
  const found = await session.run({ in: new Tensor(words, shape) });
  assert.deepEqual(found.out.data, words);
});

test("failures say what is wrong", async () => {
  const session = await Session.open(digits);
  const cases = [
    [() => session.run({}), "INVALID_INPUT", /"image" is missing/],
    [() => session.run({ image: new Tensor(new Float32Array(3)) }), "INVALID_INPUT", /rank 1.*rank 4/],
    [() => session.run({ image: new Float32Array(64) }), "INVALID_INPUT", /input image: .*new Tensor/],
    [() => session.run({ image: null }), "INVALID_INPUT", /tensor\(float\); null was given/],
    [() => session.run({ nope: image() }), "NOT_FOUND", /"nope"/],
    [() => session.run({ image: image() }, { outputs: ["nope"] }), "NOT_FOUND", /"nope"/],
    [() => session.run({ "image\0": image() }), "INVALID_ARGUMENT", /NUL inside/],
    [() => session.run({ image: image() }, { options: { nope: 1 } }), "INVALID_ARGUMENT", /"nope"/],
    [() => Session.open("nope.onnx"), "NOT_FOUND", /nope\.onnx/],
    [() => Session.open(Uint8Array.of(1, 2, 3)), "INVALID_MODEL", /no ONNX model/],
    [() => Session.open(7), "INVALID_ARGUMENT", /path of a file/],
    [() => Session.open(digits, { options: { nope: 1 } }), "INVALID_ARGUMENT", /"nope"/],
    [() => Session.open(digits, { providers: ["nope"] }), "INVALID_ARGUMENT", /"nope"/],
  ];
  for (const [call, code, message] of cases) {
    await assert.rejects(call, failsWith(code, message));
  }
});

test("a run is cancelled by a signal, and by its time-out", async () => {
  const session = await Session.open(model("count"));
  const forever = { times: new Tensor("int64", [1n << 40n], session.inputs[0].shape) };
  const controller = new AbortController();
  const run = session.run(forever, { signal: controller.signal });
  setTimeout(() => controller.abort(), 50);
  await assert.rejects(run, { name: "AbortError" });
  await assert.rejects(() => session.run(forever, { signal: controller.signal }), { name: "AbortError" });
  const limited = session.run(forever, { options: { timeout_ms: 50 } });
  await assert.rejects(limited, failsWith("CANCELLED", /50/));
  const few = { times: new Tensor("int64", [3n], session.inputs[0].shape) };
  const found = await session.run(few, { signal: new AbortController().signal });
  assert.equal(Number(found.counted.data[0]), 3);
});

test("what is disposed during a run serves it to its end, and then says so", async () => {
  const session = await Session.open(digits);
  const tensor = image();
  const run = session.run({ image: tensor });
  session.dispose();
  tensor.dispose();
  session.dispose();
  assert.equal((await run).scores.size, 10);
  await assert.rejects(() => session.run({ image: image() }), failsWith("INVALID_HANDLE", /Session was disposed/));
  assert.throws(() => tensor.data, failsWith("INVALID_HANDLE", /Tensor was disposed/));
  assert.ok(session.disposed);
});

test("an environment has threads, and writes its log", async () => {
  const messages = [];
  const environment = new Environment({
    options: { threads: 2 },
    log: (level, text) => messages.push([level, text]),
    logLevel: "info",
  });
  assert.equal(environment.threadCount, 2);
  const session = await Session.open(digits, { environment });
  environment.dispose();
  await session.run({ image: image() });
  session.dispose();
  assert.ok(messages.some(([level, text]) => level === "info" && text.includes("opened model")), String(messages));
  assert.throws(() => new Environment({ log: () => {}, logLevel: "loud" }), failsWith("INVALID_ARGUMENT", /debug, info/));
  assert.throws(() => new Environment({ options: { nope: 1 } }), failsWith("INVALID_ARGUMENT", /"nope"/));
});

test("devices agree with why there are none", () => {
  const environment = Environment.default;
  const gpus = environment.devices.filter((device) => device.provider !== "cpu");
  assert.equal(gpus.length > 0, environment.providerReason("hip") === "");
  for (const device of environment.devices) {
    assert.ok(device.name.length > 0 && device.memory > 0, JSON.stringify(device));
  }
});
