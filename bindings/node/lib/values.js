// Values of a model's types and what they are in JavaScript: a tensor is a Tensor, a sequence an array, a map a Map,
// an optional without a value null.

import { ElementType, Kind, Status } from "./constants.js";
import { elementNumber, inferredName } from "./elements.js";
import { RukhError } from "./errors.js";
import { raw, resultOf } from "./raw.js";
import { Tensor, adopt } from "./tensor.js";

/**
 * The address of a value for an input of a type such as "seq(tensor(float))". Functions that end what was made for it,
 * and let go what it uses, are added to `after`; the caller calls them after the run.
 */
export function toValue(value, type, after) {
  const created = (address) => {
    after.push(() => raw.value_destroy(address));
    return address;
  };
  const [, word, inside] = /^(\w+)\((.*)\)/s.exec(type) ?? [null, "", ""];
  const element = innermost(type);
  if (word === "optional") {
    if (value === null || value === undefined) {
      return created(resultOf("value_create_optional", null, element));
    }
    return created(resultOf("value_create_optional", toValue(value, inside, after), element));
  }
  if (value instanceof Tensor) {
    after.push(value.hold());
    return value.address;
  }
  if (Array.isArray(value) && word === "seq") {
    const items = value.map((item) => toValue(item, inside, after));
    return created(resultOf("value_create_sequence", items, items.length, element));
  }
  if (value instanceof Map && word === "map") {
    return created(toMap(value, inside, element, after));
  }
  if (ArrayBuffer.isView(value) && inferredName(value) !== undefined) {
    throw new RukhError(Status.INVALID_INPUT, "an array has no shape; give new Tensor(array, shape)");
  }
  const given = value === null ? "null" : (value?.constructor?.name ?? typeof value);
  throw new RukhError(Status.INVALID_INPUT, `its type is ${type}; ${given} was given`);
}

function toMap(map, inside, element, after) {
  const [, key, item] = /^(\w+)\s*,\s*(.*)$/s.exec(inside) ?? [null, "int64", inside];
  const keys = new Tensor(key, [...map.keys()], [map.size]);
  try {
    const items = [...map.values()].map((value) => toValue(value, item, after));
    return resultOf("value_create_map", keys.address, items, items.length, element);
  } finally {
    keys.dispose();
  }
}

/** The element type of the tensors inside a type. */
function innermost(type) {
  const name = /tensor\((\w+)\)/.exec(type)?.[1];
  return name === undefined ? ElementType.UNDEFINED : elementNumber(name);
}

/** What a value is in JavaScript; takes the address over. */
export function fromValue(address) {
  const kind = resultOf("value_kind", address);
  if (kind === Kind.TENSOR) {
    return adopt(address);
  }
  try {
    const count = Number(resultOf("value_item_count", address));
    const items = Array.from({ length: count }, (_, index) => fromValue(resultOf("value_item", address, index)));
    if (kind === Kind.OPTIONAL) {
      return items[0] ?? null;
    }
    if (kind === Kind.MAP) {
      const keys = adopt(resultOf("value_map_keys", address));
      const found = new Map(Array.from(keys.data, (key, index) => [key, items[index]]));
      keys.dispose();
      return found;
    }
    return items;
  } finally {
    raw.value_destroy(address);
  }
}
