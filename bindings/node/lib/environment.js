// The environment: the threads and settings that sessions share.

import koffi from "koffi";

import { LogLevel, LogText, Status } from "./constants.js";
import { RukhError } from "./errors.js";
import { Handle } from "./handle.js";
import { raw, resultOf, textOf } from "./raw.js";

const LEVELS = Object.keys(LogLevel).map((name) => name.toLowerCase());
let shared = null;

/** The threads and settings that sessions share. */
export class Environment extends Handle {
  constructor({ options = {}, log = null, logLevel = "warning" } = {}) {
    const settings = resultOf("environment_options_create");
    try {
      for (const [key, value] of Object.entries(options)) {
        raw.environment_options_set(settings, key, optionText(value));
      }
      if (log !== null) {
        setLog(settings, log, logLevel);
      }
      super("environment", resultOf("environment_create", settings));
    } finally {
      raw.environment_options_destroy(settings);
    }
  }

  /** The environment of sessions for which none is named. */
  static get default() {
    if (shared === null || shared.disposed) {
      shared = new Environment();
    }
    return shared;
  }

  /** How many threads compute. */
  get threadCount() {
    return Number(resultOf("environment_thread_count", this.address));
  }

  /** The CPU and the GPUs, as { provider, name, architecture, memory } with the memory in bytes. */
  get devices() {
    const count = Number(resultOf("environment_device_count", this.address));
    return Array.from({ length: count }, (_, index) => {
      const device = resultOf("environment_device", this.address, index);
      try {
        return {
          provider: resultOf("device_provider", device),
          name: resultOf("device_name", device),
          architecture: resultOf("device_arch", device),
          memory: Number(resultOf("device_memory", device)),
        };
      } finally {
        raw.device_destroy(device);
      }
    });
  }

  /** Why a provider such as "hip" cannot be used here; "" when it can. */
  providerReason(provider) {
    return textOf("environment_provider_reason", this.address, provider);
  }
}

/** An option's value as the C API takes it. */
export function optionText(value) {
  return typeof value === "boolean" ? String(Number(value)) : String(value);
}

function setLog(settings, log, level) {
  const number = LEVELS.indexOf(level);
  if (number < 0) {
    throw new RukhError(Status.INVALID_ARGUMENT, `log level ${level} was given; allowed are ${LEVELS.join(", ")}`);
  }
  const callbacks = [];
  // Called when nothing logs any more; a callback cannot end itself.
  const release = () => setImmediate(() => callbacks.forEach((callback) => koffi.unregister(callback)));
  const write = (record) => {
    const given = resultOf("log_record_level", record);
    log(LEVELS[given] ?? String(given), resultOf("log_record_text", record, LogText.MESSAGE));
  };
  callbacks.push(koffi.register(write, "rukh_log_record_callback *"), koffi.register(release, "rukh_release *"));
  raw.environment_options_set_log_callback(settings, number, callbacks[0], null, callbacks[1]);
}
