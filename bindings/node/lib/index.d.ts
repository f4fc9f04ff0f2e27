// The types of the package, by hand; test/types.ts and test/package.test.js hold them against what the package has.

/** The version of the library that runs, such as "0.1.0". */
export function libraryVersion(): string;

/** What the library refused or failed at. */
export class RukhError extends Error {
  /** The kind of failure, such as "RUKH_ERROR_INVALID_INPUT". */
  readonly code: string;
  /** Its number, as in `Status` of "rukh/constants". */
  readonly status: number;
  constructor(status: number, message: string);
}

/** The base of what stands for an object of the library. */
declare class Handle {
  protected constructor(kind: string, address: bigint);
  /** The address for calls of "rukh/raw", valid until `dispose`. */
  get address(): bigint;
  /** Whether `dispose` was called. */
  get disposed(): boolean;
  /**
   * Ends the object now; what still uses it goes on. Calling it again does nothing. Without it the object ends some time
   * after JavaScript no longer has it.
   */
  dispose(): void;
  /** `dispose`, for `using`. */
  [Symbol.dispose](): void;
}

/** Values of options: numbers and booleans are written as the library reads them. */
export type Options = Record<string, string | number | boolean>;

export type LogLevel = "debug" | "info" | "warning" | "error";

export interface EnvironmentOptions {
  /** Such as { threads: 4 }; docs/options.md has all. */
  options?: Options;
  /** Receives messages of the library, on the main thread. */
  log?: ((level: LogLevel, message: string) => void) | null;
  /** The least level that `log` receives: "warning" unless told. */
  logLevel?: LogLevel;
}

export interface Device {
  provider: string;
  name: string;
  architecture: string;
  /** In bytes. */
  memory: number;
}

/** The threads and settings that sessions share. */
export class Environment extends Handle {
  constructor(settings?: EnvironmentOptions);
  /** The environment of sessions for which none is named. */
  static get default(): Environment;
  /** How many threads compute. */
  get threadCount(): number;
  /** The CPU and the GPUs. */
  get devices(): Device[];
  /** Why a provider such as "hip" cannot be used here; "" when it can. */
  providerReason(provider: string): string;
}

/** Element types as ONNX names them. */
export type ElementName =
  | "float" | "double" | "float16" | "bfloat16"
  | "int2" | "int4" | "int8" | "int16" | "int32" | "int64"
  | "uint2" | "uint4" | "uint8" | "uint16" | "uint32" | "uint64"
  | "bool" | "string" | "complex64" | "complex128"
  | "float8e4m3fn" | "float8e4m3fnuz" | "float8e5m2" | "float8e5m2fnuz" | "float8e8m0"
  | "float4e2m1" | "float6e2m3" | "float6e3m2";

export type TypedArray =
  | Float32Array | Float64Array
  | Int8Array | Int16Array | Int32Array | BigInt64Array
  | Uint8Array | Uint8ClampedArray | Uint16Array | Uint32Array | BigUint64Array;

/** A tensor in the library's memory. */
export class Tensor extends Handle {
  /** Copies the elements of an array, whose type they have. Without a shape the tensor has one dimension. */
  constructor(data: TypedArray | string[], shape?: readonly (number | bigint)[]);
  /**
   * Copies elements of a named type. Types that JavaScript has no array for are given as bits (float16 and bfloat16 in a
   * Uint16Array, bool and the 8-bit floats in a Uint8Array), complex numbers as pairs.
   */
  constructor(
    type: ElementName,
    data: TypedArray | readonly (number | bigint | boolean | string)[],
    shape?: readonly (number | bigint)[],
  );
  /** The element type. */
  get type(): ElementName;
  /** The dimensions. */
  get shape(): number[];
  /** The number of elements. */
  get size(): number;
  /**
   * The elements in row-major order, copied at the first use; writing to them does not change the tensor. Strings come
   * as string[].
   */
  get data(): TypedArray | string[];
}

/** Tensors by name, such as LoRA's, which sessions and runs take in place of a model's. They keep what they need of it. */
export class Adapter extends Handle {
  /** An adapter of tensors, which it shares. */
  constructor(tensors: Readonly<Record<string, Tensor>>);
  /** Opens a file of an adapter, as ONNX Runtime writes it (.onnx_adapter). */
  static open(path: string): Adapter;
  /** The tensors by their names. */
  get tensors(): Record<string, Tensor>;
  /** Writes the adapter to a file that ONNX Runtime reads as well. */
  save(path: string): void;
}

/** What goes into a model and comes out: a tensor, a sequence, a map, or an optional, null when it is empty. */
export type Value = Tensor | Value[] | Map<string | bigint | number, Value> | null;

export interface Port {
  readonly name: string;
  /** As the ONNX standard writes it: "tensor(float)", "seq(tensor(int64))" … */
  readonly type: string;
  /** null for a dimension that only a run tells, and in place of all when their number is not known. */
  readonly shape: readonly (number | null)[] | null;
}

export interface SessionOptions {
  environment?: Environment;
  /** "hip" for GPUs and "cpu", the preferred one first; without any the CPU runs everything. */
  providers?: (string | { name: string; options?: Options })[];
  /** Such as { intra_op_threads: 2 }; docs/options.md has all. */
  options?: Options;
  /** Their tensors take the place of initializers, for good; of two the last counts. */
  adapters?: readonly Adapter[];
}

export interface RunOptions {
  /** The outputs that are computed and returned; all unless told. */
  outputs?: readonly string[];
  /** Ends the run, which then rejects with the reason of the signal. */
  signal?: AbortSignal;
  /** Such as { timeout_ms: 500 }; docs/options.md has all. */
  options?: Options;
  /** What the run is not given is taken from these; of two the last counts. */
  adapters?: readonly Adapter[];
}

export interface Metadata {
  producerName: string;
  producerVersion: string;
  domain: string;
  graphName: string;
  description: string;
  properties: Record<string, string>;
}

/** A model, ready to run. Runs may overlap. */
export class Session extends Handle {
  private constructor(address: bigint);
  /** Opens a model on a thread of Node's pool: the path of a file, or its bytes, which are copied. */
  static open(model: string | Uint8Array, options?: SessionOptions): Promise<Session>;
  /** The inputs in the model's order. */
  get inputs(): readonly Port[];
  /** The outputs in the model's order. */
  get outputs(): readonly Port[];
  /** What the model says about itself. */
  get metadata(): Metadata;
  /** Runs the model on a thread of Node's pool: values by the names of inputs, results by the names of outputs. */
  run(inputs: Record<string, Value>, options?: RunOptions): Promise<Record<string, Value>>;
}
