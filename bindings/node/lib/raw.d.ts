import type { Functions } from "./functions.js";

export type { Address, Functions, Integer, Memory, Out } from "./functions.js";

/** The functions of the C API without `rukh_`. The library is loaded at the first use. */
export const raw: Functions;
