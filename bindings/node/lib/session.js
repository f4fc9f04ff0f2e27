// Sessions: a model, ready to run.

import { addAdapters } from "./adapter.js";
import { ModelText, Status } from "./constants.js";
import { Environment, optionText } from "./environment.js";
import { RukhError } from "./errors.js";
import { Handle } from "./handle.js";
import { raw, resultOf, textOf } from "./raw.js";
import { fromValue, toValue } from "./values.js";

/** A model, ready to run. Runs may overlap. */
export class Session extends Handle {
  #inputs;
  #outputs;

  /** `Session.open` makes sessions. */
  constructor(address) {
    super("session", address);
    this.#inputs = ports(address, "input");
    this.#outputs = ports(address, "output");
  }

  /** Opens a model: the path of a file, or its bytes. */
  static async open(model, { environment = Environment.default, providers = [], options = {}, adapters = [] } = {}) {
    const settings = settingsOf(providers, options, adapters);
    const out = [null];
    try {
      await environment.useDuring((address) => {
        if (typeof model === "string") {
          return raw.session_create.async(address, model, settings, out);
        }
        if (!ArrayBuffer.isView(model)) {
          throw new RukhError(Status.INVALID_ARGUMENT, "a model is the path of a file, or its bytes in a Uint8Array");
        }
        return raw.session_create_from_memory.async(address, model, model.byteLength, settings, out);
      });
    } finally {
      raw.session_options_destroy(settings);
    }
    return new Session(out[0]);
  }

  /** The inputs in the model's order, as { name, type, shape } with null for a dimension that is not known. */
  get inputs() {
    return this.#inputs;
  }

  /** The outputs, likewise. */
  get outputs() {
    return this.#outputs;
  }

  /** What the model says about itself. */
  get metadata() {
    const text = (which) => resultOf("session_model_text", this.address, which);
    const properties = {};
    const count = Number(resultOf("session_property_count", this.address));
    for (let index = 0; index < count; index += 1) {
      const [key, value] = [[null], [null]];
      raw.session_property(this.address, index, key, value);
      properties[key[0]] = value[0];
    }
    return {
      producerName: text(ModelText.PRODUCER_NAME),
      producerVersion: text(ModelText.PRODUCER_VERSION),
      domain: text(ModelText.DOMAIN),
      graphName: text(ModelText.GRAPH_NAME),
      description: text(ModelText.DESCRIPTION),
      properties,
    };
  }

  /**
   * Runs the model on a thread of Node's pool. `inputs` gives each input by its name; the result has each output by its
   * name, of all or of those that `outputs` names.
   */
  async run(inputs, { outputs, signal, options = {}, adapters = [] } = {}) {
    signal?.throwIfAborted();
    const names = Object.keys(inputs);
    const wanted = outputs ?? this.#outputs.map((port) => port.name);
    const after = [];
    const settings = runSettings(signal, options, adapters);
    const cancel = () => raw.run_options_cancel(settings);
    signal?.addEventListener("abort", cancel, { once: true });
    const results = new Array(wanted.length).fill(null);
    try {
      const values = names.map((name) => this.#value(name, inputs[name], after));
      await this.useDuring((address) =>
        raw.session_run.async(address, settings, names, values, names.length, wanted, wanted.length, results),
      );
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", cancel);
      after.forEach((end) => end());
      raw.run_options_destroy(settings);
    }
    return Object.fromEntries(wanted.map((name, index) => [name, fromValue(results[index])]));
  }

  #value(name, value, after) {
    const type = this.#inputs.find((port) => port.name === name)?.type ?? "tensor()";
    try {
      return toValue(value, type, after);
    } catch (error) {
      if (error instanceof RukhError) {
        error.message = `input ${name}: ${error.message}`;
      }
      throw error;
    }
  }
}

function settingsOf(providers, options, adapters) {
  const settings = resultOf("session_options_create");
  try {
    for (const [key, value] of Object.entries(options)) {
      raw.session_options_set(settings, key, optionText(value));
    }
    for (const provider of providers) {
      const [name, own] = typeof provider === "string" ? [provider, {}] : [provider.name, provider.options ?? {}];
      const keys = Object.keys(own);
      const values = keys.map((key) => optionText(own[key]));
      raw.session_options_add_provider(settings, name, keys, values, keys.length);
    }
    addAdapters(settings, adapters, "session_options_add_adapter");
  } catch (error) {
    raw.session_options_destroy(settings);
    throw error;
  }
  return settings;
}

/** Options of a run that can be cancelled, or has options of its own or adapters; null otherwise. */
function runSettings(signal, options, adapters) {
  const entries = Object.entries(options);
  if (signal === undefined && entries.length === 0 && adapters.length === 0) {
    return null;
  }
  const settings = resultOf("run_options_create");
  try {
    entries.forEach(([key, value]) => raw.run_options_set(settings, key, optionText(value)));
    addAdapters(settings, adapters, "run_options_add_adapter");
  } catch (error) {
    raw.run_options_destroy(settings);
    throw error;
  }
  return settings;
}

function ports(session, side) {
  const count = Number(resultOf(`session_${side}_count`, session));
  return Object.freeze(
    Array.from({ length: count }, (_, index) => {
      const name = resultOf(`session_${side}_name`, session, index);
      const type = textOf(`session_${side}_type_text`, session, index).replace(/\[[^\]]*\]/g, "");
      return Object.freeze({ name, type, shape: shape(session, side, index) });
    }),
  );
}

/** The dimensions; null for one that is not known, and in place of all when the rank is not. */
function shape(session, side, index) {
  const rank = [0];
  raw[`session_${side}_shape`](session, index, null, 0, rank);
  const count = Number(rank[0]);
  if (count < 0) {
    return null;
  }
  const dims = new BigInt64Array(count);
  raw[`session_${side}_shape`](session, index, dims, count, rank);
  return Object.freeze(Array.from(dims, (size) => (size < 0n ? null : Number(size))));
}
