// ONNX models on AMD GPUs, NVIDIA GPUs and CPUs: the package's public face.

import { raw } from "./raw.js";

export { Adapter } from "./adapter.js";
export { Environment } from "./environment.js";
export { RukhError } from "./errors.js";
export { Session } from "./session.js";
export { Tensor } from "./tensor.js";

/** The version of the library that runs, such as "0.1.0". */
export function libraryVersion() {
  return raw.version_string();
}
