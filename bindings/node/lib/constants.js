// Written by scripts/bindings/write.py from abi/rukh-api.json; not to be changed by hand.

/** What a function returns: `RUKH_OK` or one of the `RUKH_ERROR_…` codes. The numbers never change. */
export const Status = Object.freeze({
  OK: 0,
  INVALID_ARGUMENT: 1,
  INVALID_HANDLE: 2,
  NOT_FOUND: 3,
  IO: 4,
  INVALID_MODEL: 5,
  UNSUPPORTED: 6,
  INVALID_INPUT: 7,
  INVALID_DATA: 8,
  OUT_OF_MEMORY: 9,
  CANCELLED: 10,
  DEVICE: 11,
  POISONED: 12,
  FORKED: 13,
  INTERNAL: 14,
});

/** The type of a tensor's elements. The numbers are those of ONNX's `TensorProto.DataType`. Elements narrower than a byte (`INT4`, `UINT4`, `INT2`, `UINT2`, `FLOAT4E2M1`, `FLOAT6E2M3`, `FLOAT6E3M2`) take one byte each in memory; integers are sign-extended where signed. A `BOOL` is one byte; any byte but 0 is true. */
export const ElementType = Object.freeze({
  UNDEFINED: 0,
  FLOAT: 1,
  UINT8: 2,
  INT8: 3,
  UINT16: 4,
  INT16: 5,
  INT32: 6,
  INT64: 7,
  STRING: 8,
  BOOL: 9,
  FLOAT16: 10,
  DOUBLE: 11,
  UINT32: 12,
  UINT64: 13,
  COMPLEX64: 14,
  COMPLEX128: 15,
  BFLOAT16: 16,
  FLOAT8E4M3FN: 17,
  FLOAT8E4M3FNUZ: 18,
  FLOAT8E5M2: 19,
  FLOAT8E5M2FNUZ: 20,
  UINT4: 21,
  INT4: 22,
  FLOAT4E2M1: 23,
  FLOAT8E8M0: 24,
  UINT2: 25,
  INT2: 26,
  FLOAT6E2M3: 27,
  FLOAT6E3M2: 28,
});

/** What a value is. */
export const Kind = Object.freeze({
  UNDEFINED: 0,
  TENSOR: 1,
  SEQUENCE: 2,
  MAP: 3,
  OPTIONAL: 4,
});

/** How much a log message matters. */
export const LogLevel = Object.freeze({
  DEBUG: 0,
  INFO: 1,
  WARNING: 2,
  ERROR: 3,
});

/** A text of a log message. */
export const LogText = Object.freeze({
  MESSAGE: 0,
  CATEGORY: 1,
  SESSION: 2,
  RUN: 3,
  NODE: 4,
  LOCATION: 5,
});

/** How a model file comes into memory. */
export const LoadMode = Object.freeze({
  MAP: 0,
  READ: 1,
});

/** How far the model's graph is rewritten before it runs. No level changes what the model means. */
export const Optimization = Object.freeze({
  NONE: 0,
  BASIC: 1,
  ALL: 2,
});

/** What happens to a node that none of the wanted providers can take. */
export const Fallback = Object.freeze({
  CPU: 0,
  ERROR: 1,
});

/** Memory, as a device sees it. */
export const MemoryKind = Object.freeze({
  DEVICE: 0,
  PINNED: 1,
  HOST: 2,
});

/** What another API exported memory as. */
export const ExternalHandle = Object.freeze({
  EXTERNAL_OPAQUE_FD: 0,
  EXTERNAL_DMA_BUF: 1,
  EXTERNAL_WIN32: 2,
});

/** Whether an artifact suits a device and options. */
export const ArtifactVerdict = Object.freeze({
  ARTIFACT_OPTIMAL: 0,
  ARTIFACT_WORKS: 1,
  ARTIFACT_UNFIT: 2,
});

/** How often an input or output of an operator may be there. */
export const Arity = Object.freeze({
  REQUIRED: 0,
  OPTIONAL: 1,
  VARIADIC: 2,
  VARIADIC_SOME: 3,
});

/** The type of an attribute. The numbers are those of ONNX's `AttributeProto.AttributeType`. */
export const AttributeType = Object.freeze({
  FLOAT: 1,
  INT: 2,
  STRING: 3,
  TENSOR: 4,
  FLOATS: 6,
  INTS: 7,
  STRINGS: 8,
});

/** A text about where a node runs. */
export const PlacementFact = Object.freeze({
  PLACEMENT_NODE: 0,
  PLACEMENT_OPERATOR: 1,
  PLACEMENT_PROVIDER: 2,
  PLACEMENT_REASON: 3,
});

/** A text that the model file carries about itself. */
export const ModelText = Object.freeze({
  PRODUCER_NAME: 0,
  PRODUCER_VERSION: 1,
  DOMAIN: 2,
  GRAPH_NAME: 3,
  DESCRIPTION: 4,
});

/** A count of what opening a session did. */
export const LoadCounter = Object.freeze({
  MAPPED_BYTES: 0,
  READ_BYTES: 1,
  COPIED_BYTES: 2,
  PACKED_BYTES: 3,
  COPIED_WEIGHTS: 4,
  SHARED_BYTES: 5,
});
