// Adapters: tensors that take the place of a model's, such as those of LoRA.

import { Status } from "./constants.js";
import { RukhError } from "./errors.js";
import { Handle } from "./handle.js";
import { raw, resultOf, textOf } from "./raw.js";
import { Tensor, adopt } from "./tensor.js";

const opened = Symbol("the address of an adapter that was opened");

/** Tensors by name, which sessions and runs take in place of a model's. They keep what they need of it. */
export class Adapter extends Handle {
  constructor(tensors) {
    super("adapter", tensors?.[opened] ?? created(tensors));
  }

  /** Opens a file of an adapter, as ONNX Runtime writes it (.onnx_adapter). */
  static open(path) {
    return new Adapter({ [opened]: resultOf("adapter_open", path) });
  }

  /** The tensors by their names. */
  get tensors() {
    const count = Number(resultOf("adapter_parameter_count", this.address));
    const entry = (_, index) => [
      textOf("adapter_parameter_name", this.address, index),
      adopt(resultOf("adapter_parameter_value", this.address, index)),
    ];
    return Object.fromEntries(Array.from({ length: count }, entry));
  }

  /** Writes the adapter to a file that ONNX Runtime reads as well. */
  save(path) {
    raw.adapter_save(this.address, path);
  }
}

/** Adds adapters to options by a function of the raw layer. */
export function addAdapters(options, adapters, add) {
  for (const adapter of adapters) {
    if (!(adapter instanceof Adapter)) {
      throw new RukhError(Status.INVALID_ARGUMENT, `adapters: ${describe(adapter)} was given; Adapter.open gives one`);
    }
    raw[add](options, adapter.address);
  }
}

function created(tensors) {
  const entries = Object.entries(tensors ?? {});
  for (const [name, tensor] of entries) {
    if (!(tensor instanceof Tensor)) {
      throw new RukhError(Status.INVALID_ARGUMENT, `adapter: ${name} is ${describe(tensor)}; a Tensor is needed`);
    }
  }
  const names = entries.map(([name]) => name);
  const addresses = entries.map(([, tensor]) => tensor.address);
  return resultOf("adapter_create", names, addresses, names.length, 0, 0);
}

function describe(value) {
  return value === null ? "null" : (value?.constructor?.name ?? typeof value);
}
