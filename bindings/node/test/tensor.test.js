import assert from "node:assert/strict";
import { test } from "node:test";

import { RukhError, Tensor } from "rukh";
import { raw } from "rukh/raw";
import { ElementType } from "rukh/constants";

import { fromValue, toValue } from "../lib/values.js";

const ARRAYS = [
  ["float", Float32Array.of(1.5, -2)],
  ["double", Float64Array.of(1.5, -2)],
  ["int8", Int8Array.of(1, -2)],
  ["int16", Int16Array.of(1, -2)],
  ["int32", Int32Array.of(1, -2)],
  ["int64", BigInt64Array.of(1n, -(2n ** 62n))],
  ["uint8", Uint8Array.of(1, 255)],
  ["uint16", Uint16Array.of(1, 65535)],
  ["uint32", Uint32Array.of(1, 2 ** 32 - 1)],
  ["uint64", BigUint64Array.of(1n, 2n ** 64n - 1n)],
];

test("arrays have types of their own", () => {
  for (const [type, array] of ARRAYS) {
    const tensor = new Tensor(array, [2, 1]);
    assert.equal(tensor.type, type);
    assert.deepEqual(tensor.shape, [2, 1]);
    assert.equal(tensor.size, 2);
    assert.deepEqual(tensor.data, array);
  }
});

test("every element type of the library can be named", () => {
  for (const name of Object.keys(ElementType)) {
    if (name === "UNDEFINED" || name === "STRING") {
      continue;
    }
    const tensor = new Tensor(name.toLowerCase(), name.startsWith("COMPLEX") ? [1, 2] : [1], [1]);
    assert.equal(tensor.type, name.toLowerCase());
    assert.deepEqual(Array.from(tensor.data, Number), name.startsWith("COMPLEX") ? [1, 2] : [1]);
  }
});

test("plain arrays, views, scalars and empty tensors", () => {
  assert.deepEqual(new Tensor("int64", [1, 2n]).data, BigInt64Array.of(1n, 2n));
  assert.deepEqual(new Tensor("bool", [true, false]).data, Uint8Array.of(1, 0));
  assert.deepEqual(new Tensor(Float32Array.of(1, 2, 3, 4).subarray(1, 3)).data, Float32Array.of(2, 3));
  assert.deepEqual(new Tensor(Float32Array.of(7), []).shape, []);
  assert.deepEqual(new Tensor(new Float32Array(0), [3, 0]).data, new Float32Array(0));
  assert.deepEqual(new Tensor([], [0]).type, "string");
  assert.deepEqual(new Tensor(Uint8ClampedArray.of(1, 300)).data, Uint8Array.of(1, 255));
  assert.equal(new Tensor(new Float32Array(1), Array(12).fill(1)).shape.length, 12);
});

test("elements are copied, both ways", () => {
  const array = Float32Array.of(1, 2);
  const tensor = new Tensor(array);
  array[0] = 9;
  tensor.data[1] = 9;
  const again = [null];
  raw.value_clone(tensor.address, again);
  assert.deepEqual(fromValue(again[0]).data, Float32Array.of(1, 2));
});

test("wrong data are refused with what is allowed", () => {
  const cases = [
    [() => new Tensor(new Float32Array(3), [2]), /12|3|2/],
    [() => new Tensor("float32", [1]), /float32 was given; allowed are float, /],
    [() => new Tensor("float", Int32Array.of(1)), /Float32Array or an array; Int32Array was given/],
    [() => new Tensor([1, 2]), /name the type first/],
    [() => new Tensor("string", [1]), /array of strings/],
    [() => new Tensor(new Float32Array(1), [-1]), /-1 is no dimension/],
    [() => new Tensor(new Float32Array(1), [0.5]), /0\.5 is no dimension/],
    [() => new Tensor(new Float32Array(1), 1), /must be an array of dimensions/],
    [() => new Tensor(), /undefined/],
  ];
  for (const [make, message] of cases) {
    assert.throws(make, (error) => {
      assert.ok(error instanceof RukhError, String(error.stack));
      assert.equal(error.code, "RUKH_ERROR_INVALID_ARGUMENT");
      assert.match(error.message, message);
      return true;
    });
  }
});

/** A value that goes into the library and comes back. */
function through(value, type) {
  const after = [];
  try {
    const again = [null];
    raw.value_clone(toValue(value, type, after), again);
    return fromValue(again[0]);
  } finally {
    after.forEach((end) => end());
  }
}

test("maps, optionals and sequences come back as they went", () => {
  const one = new Tensor(Float32Array.of(1));
  const two = new Tensor(Float32Array.of(2));
  const words = through(new Map([["a", one], ["b", two]]), "map(string,tensor(float))");
  assert.deepEqual([...words].map(([key, value]) => [key, value.data[0]]), [["a", 1], ["b", 2]]);
  assert.deepEqual([...through(new Map([[7n, one]]), "map(int64,tensor(float))").keys()], [7n]);
  assert.equal(through(null, "optional(tensor(float))"), null);
  assert.deepEqual(through(two, "optional(tensor(float))").data, Float32Array.of(2));
  assert.deepEqual(through([], "seq(tensor(int64))"), []);
  const inner = through([new Map([[1n, two]])], "seq(map(int64,tensor(float)))");
  assert.deepEqual(inner[0].get(1n).data, Float32Array.of(2));
});

test("memory goes back when nobody has the tensors any more", { skip: !globalThis.gc && "needs --expose-gc" }, async () => {
  const before = process.memoryUsage().rss;
  const bytes = 16 << 20;
  for (let i = 0; i < 100; i += 1) {
    new Tensor("uint8", new Uint8Array(bytes).fill(1));
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 25 * bytes, `100 tensors of ${bytes} bytes left ${grown} bytes`);
});
