// Finds librukh and makes its functions callable. The library is loaded at the first call, and a function is declared
// when it is used first: one that the library does not have fails then, by name.

import koffi from "koffi";

import { ABI_VERSION, CALLBACKS, FAILING, FUNCTIONS, SINCE } from "./functions.js";
import { RukhError } from "./errors.js";
import { Status } from "./constants.js";

for (const [name, [result, parameters]] of Object.entries(CALLBACKS)) {
  koffi.proto(`rukh_${name}`, result, parameters);
}

let loaded = null;

/** The functions of the C API without `rukh_`; see `Functions` in functions.d.ts. */
export const raw = {};

for (const name of Object.keys(FUNCTIONS)) {
  Object.defineProperty(raw, name, {
    configurable: true,
    enumerable: true,
    get() {
      loaded ??= open();
      const value = declare(loaded, name);
      Object.defineProperty(raw, name, { value, enumerable: true });
      return value;
    },
  });
}

/** The file that RUKH_LIBRARY names, else the library that the system finds. */
function open() {
  const named = process.env.RUKH_LIBRARY;
  const failures = [];
  for (const path of named ? [named] : ["librukh.so.0.1", "librukh.so"]) {
    let handle;
    try {
      handle = koffi.load(path);
    } catch (error) {
      failures.push(`${path}: ${error.message}`);
      continue;
    }
    checkVersion(declare({ handle, path }, "abi_version")());
    return { handle, path };
  }
  const said = `librukh cannot be loaded (set RUKH_LIBRARY to its path): ${failures.join("; ")}`;
  throw new RukhError(Status.NOT_FOUND, said);
}

/** The rule of rukh.h: the same major and minor version. A function that is newer fails when it is called. */
export function checkVersion(found) {
  if (Math.trunc(found / 1000) !== Math.trunc(ABI_VERSION / 1000)) {
    const series = dotted(ABI_VERSION).replace(/\.\d+$/, "");
    const said = `librukh has binary interface ${dotted(found)}; this package needs one of the series ${series}`;
    throw new RukhError(Status.UNSUPPORTED, said);
  }
}

function dotted(number) {
  return [Math.trunc(number / 1e6), Math.trunc(number / 1000) % 1000, number % 1000].join(".");
}

/** The function `rukh_NAME` of a library, or one that says that the library does not have it. */
export function declare({ handle, path }, name) {
  const [result, parameters] = FUNCTIONS[name];
  let native;
  try {
    native = handle.func(`rukh_${name}`, result, parameters);
  } catch {
    return missing(path, name);
  }
  const texts = parameters.flatMap((type, index) => (type === "str" || type === "str *" ? [index] : []));
  const checked = (given) => {
    for (const index of texts) {
      checkText(given[index]);
    }
    return given;
  };
  if (!FAILING.has(name)) {
    return texts.length === 0 ? native : (...given) => native(...checked(given));
  }
  const call = (...given) => {
    const error = [null];
    const status = native(...checked(given), error);
    if (status !== Status.OK) {
      throw failure(status, error[0]);
    }
  };
  call.async = (...given) =>
    new Promise((resolve, reject) => {
      const error = [null];
      native.async(...checked(given), error, (broken, status) => {
        void given; // Held by this function until the call has ended, and with it the memory that the library uses.
        if (broken || status !== Status.OK) {
          reject(broken ?? failure(status, error[0]));
        } else {
          resolve();
        }
      });
    });
  return call;
}

function missing(path, name) {
  const since = SINCE[name];
  const cause = since ? `came with binary interface ${since}` : "belongs to every librukh of this series";
  const said = `rukh_${name} ${cause}; ${path} does not have it: use a newer librukh`;
  const refuse = () => {
    throw new RukhError(Status.UNSUPPORTED, said);
  };
  refuse.async = async () => refuse();
  return refuse;
}

/** Refuses a text that C would take for a shorter one. */
function checkText(text) {
  for (const one of Array.isArray(text) ? text : [text]) {
    if (typeof one === "string" && one.includes("\0")) {
      throw new RukhError(Status.INVALID_ARGUMENT, `the text ${JSON.stringify(one)} has a NUL inside; texts end there`);
    }
  }
}

function failure(status, error) {
  const message = raw.error_message(error);
  raw.error_destroy(error);
  return new RukhError(status, message);
}

/** The text that a function builds whose parameters `buf`, `cap`, `needed` come last. */
export function textOf(name, ...given) {
  let buffer = Buffer.allocUnsafe(256);
  for (;;) {
    const needed = [0];
    try {
      raw[name](...given, buffer, buffer.length, needed);
      return buffer.toString("utf8", 0, Number(needed[0]) - 1);
    } catch (error) {
      if (Number(needed[0]) <= buffer.length) {
        throw error;
      }
      buffer = Buffer.allocUnsafe(Number(needed[0]));
    }
  }
}

/** What a function writes through its last parameter. */
export function resultOf(name, ...given) {
  const out = [null];
  raw[name](...given, out);
  return out[0];
}
