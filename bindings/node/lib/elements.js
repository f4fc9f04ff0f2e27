// Element types: their names as ONNX writes them, and the typed arrays that hold their elements.

import { ElementType, Status } from "./constants.js";
import { RukhError } from "./errors.js";

// Types that JavaScript has no array for come as their bits; complex numbers as pairs; those narrower than a byte
// take a byte each, as in the library.
const ARRAYS = {
  float: Float32Array,
  double: Float64Array,
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  bool: Uint8Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  complex64: Float32Array,
  complex128: Float64Array,
  int4: Int8Array,
  int2: Int8Array,
};

const NAMES = new Map(Object.entries(ElementType).map(([name, number]) => [number, name.toLowerCase()]));

// The type that an array's elements have when none is named.
const INFERRED = new Map(
  ["float", "double", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"].map((name) => [
    ARRAYS[name],
    name,
  ]),
);

/** The name of an element type: "float", "int64" … */
export function elementName(number) {
  return NAMES.get(number) ?? `element type ${number}`;
}

/** The number of an element type. */
export function elementNumber(name) {
  const number = typeof name === "string" ? ElementType[name.toUpperCase()] : undefined;
  if (number === undefined || number === ElementType.UNDEFINED) {
    const allowed = [...NAMES.values()].filter((one) => one !== "undefined").join(", ");
    throw new RukhError(Status.INVALID_ARGUMENT, `element type ${String(name)} was given; allowed are ${allowed}`);
  }
  return number;
}

/** The class of arrays that hold elements of a type. */
export function arrayOf(name) {
  return ARRAYS[name] ?? Uint8Array;
}

/** The type that elements of an array have; undefined for what is no typed array. */
export function inferredName(array) {
  if (array instanceof Uint8ClampedArray) {
    return "uint8";
  }
  for (const [kind, name] of INFERRED) {
    if (array instanceof kind) {
      return name;
    }
  }
  return undefined;
}
