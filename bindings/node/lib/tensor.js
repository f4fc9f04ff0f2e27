// Tensors: typed arrays, or arrays of strings, with a shape.

import koffi from "koffi";

import { Status } from "./constants.js";
import { arrayOf, elementName, elementNumber, inferredName } from "./elements.js";
import { RukhError } from "./errors.js";
import { Handle } from "./handle.js";
import { raw, resultOf, textOf } from "./raw.js";

/** A tensor in the library's memory. */
export class Tensor extends Handle {
  #data = null;

  /** Copies elements: new Tensor(array, shape) takes the type of the array, new Tensor(type, array, shape) names it. */
  constructor(...given) {
    super("value", given[0] instanceof Adopted ? given[0].address : make(...given));
  }

  /** The element type as ONNX names it: "float", "int64", "string" … */
  get type() {
    return elementName(resultOf("value_element_type", this.address));
  }

  /** The dimensions. */
  get shape() {
    return shapeOf(this.address);
  }

  /** The number of elements. */
  get size() {
    return Number(resultOf("value_element_count", this.address));
  }

  /** The elements in row-major order, copied at the first use; writing to them does not change the tensor. */
  get data() {
    this.#data ??= this.type === "string" ? strings(this.address, this.size) : elements(this.address, this.type);
    return this.#data;
  }
}

/** An address that a Tensor takes over. */
class Adopted {
  constructor(address) {
    this.address = address;
  }
}

/** The tensor of an address that the caller owns. */
export function adopt(address) {
  return new Tensor(new Adopted(address));
}

function make(...given) {
  const named = typeof given[0] === "string";
  const [type, data, shape] = named ? given : [undefined, ...given];
  if (!Array.isArray(shape ?? [])) {
    throw new RukhError(Status.INVALID_ARGUMENT, `the shape is ${String(shape)}; it must be an array of dimensions`);
  }
  const dims = BigInt64Array.from(shape ?? [data?.length ?? 0], dimension);
  if (type === "string" || (type === undefined && Array.isArray(data) && data.every((one) => typeof one === "string"))) {
    return makeStrings(data, dims);
  }
  const name = type ?? inferredName(data);
  if (name === undefined) {
    const said = `the data is ${describe(data)}; it must be a typed array or an array of strings, or name the type first`;
    throw new RukhError(Status.INVALID_ARGUMENT, said);
  }
  const number = elementNumber(name);
  const array = converted(data, name);
  return resultOf("value_create_tensor_copy", number, dims, dims.length, array, array.byteLength);
}

function dimension(size) {
  if (!Number.isSafeInteger(Number(size)) || Number(size) < 0) {
    throw new RukhError(Status.INVALID_ARGUMENT, `${String(size)} is no dimension; it must be an integer from 0`);
  }
  return BigInt(size);
}

/** The elements in an array of the type's own class. A typed array of another class is refused. */
function converted(data, name) {
  const wanted = arrayOf(name);
  const bytes = data instanceof Uint8ClampedArray && wanted === Uint8Array;
  if (data instanceof wanted || bytes) {
    return data;
  }
  if (!Array.isArray(data)) {
    const said = `elements of type ${name} come in ${wanted.name} or an array; ${describe(data)} was given`;
    throw new RukhError(Status.INVALID_ARGUMENT, said);
  }
  const big = wanted === BigInt64Array || wanted === BigUint64Array;
  return wanted.from(data, big ? BigInt : Number);
}

function describe(value) {
  return value === null ? "null" : (value?.constructor?.name ?? typeof value);
}

function makeStrings(data, dims) {
  if (!Array.isArray(data) || !data.every((one) => typeof one === "string")) {
    throw new RukhError(Status.INVALID_ARGUMENT, `strings come in an array of strings; ${describe(data)} was given`);
  }
  // One buffer for all, since a string may hold NULs, and the addresses in it.
  const encoded = data.map((one) => Buffer.from(one, "utf8"));
  const all = Buffer.concat([...encoded, Buffer.alloc(1)]);
  const begin = koffi.address(all);
  let offset = 0n;
  const addresses = encoded.map((one) => {
    const address = begin + offset;
    offset += BigInt(one.length);
    return address;
  });
  const out = [null];
  const lengths = encoded.map((one) => one.length);
  raw.value_create_strings(dims, dims.length, koffi.as(addresses, "void **"), lengths, data.length, out);
  // The call reads `all`, which must be reachable until here.
  return all.length > 0 ? out[0] : null;
}

function strings(address, count) {
  return Array.from({ length: count }, (_, index) => textOf("value_string", address, index));
}

/** The elements of a tensor on the host or on a device. */
function elements(address, type) {
  const kind = arrayOf(type);
  const source = onHost(address);
  try {
    const data = [null];
    const bytes = [0];
    raw.value_data(source, data, bytes);
    const count = Number(bytes[0]);
    const copied = count === 0 ? new Uint8Array(0) : koffi.decode(data[0], "uint8_t", count);
    return new kind(copied.buffer, copied.byteOffset, count / kind.BYTES_PER_ELEMENT);
  } finally {
    if (source !== address) {
      raw.value_destroy(source);
    }
  }
}

/** The tensor itself, or a copy of one that lies on a device; the caller destroys the copy. */
function onHost(address) {
  const onDevice = [0];
  raw.value_device(address, onDevice, null, null);
  if (!onDevice[0]) {
    return address;
  }
  const shape = shapeOf(address);
  const copy = resultOf("value_create_tensor", resultOf("value_element_type", address), shape, shape.length);
  try {
    raw.value_copy(address, copy);
  } catch (error) {
    raw.value_destroy(copy);
    throw error;
  }
  return copy;
}

function shapeOf(address) {
  const rank = [0];
  let dims = new BigInt64Array(8);
  for (;;) {
    try {
      raw.value_shape(address, dims, dims.length, rank);
      return Array.from(dims.subarray(0, Number(rank[0])), Number);
    } catch (error) {
      if (Number(rank[0]) <= dims.length) {
        throw error;
      }
      dims = new BigInt64Array(Number(rank[0]));
    }
  }
}
