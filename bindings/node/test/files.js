// Where the files are that tests use.

import { fileURLToPath } from "node:url";

const root = new URL("../../../", import.meta.url);

/** The path of a file of the repository. */
export const file = (name) => fileURLToPath(new URL(name, root));
export const digits = file("examples/digits/digits.onnx");
export const model = (name) => file(`capi-tests/models/${name}.onnx`);
