// Written by scripts/bindings/write.py from abi/rukh-api.json; not to be changed by hand.

/** What a function returns: `RUKH_OK` or one of the `RUKH_ERROR_…` codes. The numbers never change. */
export declare const Status: {
  /** Success. */
  readonly OK: 0;
  /** An argument has a value that is not allowed (NULL where it must not be, an unknown enum value). */
  readonly INVALID_ARGUMENT: 1;
  /** A handle is of another kind, was destroyed, or never was one. */
  readonly INVALID_HANDLE: 2;
  /** A file or a name is not there. */
  readonly NOT_FOUND: 3;
  /** The operating system refused to read or write. */
  readonly IO: 4;
  /** The model breaks the ONNX standard. */
  readonly INVALID_MODEL: 5;
  /** The model is valid, but something in it cannot be run. */
  readonly UNSUPPORTED: 6;
  /** An input has the wrong type, rank or dimensions. */
  readonly INVALID_INPUT: 7;
  /** The data given are not allowed: an index out of range, an integer division by zero. */
  readonly INVALID_DATA: 8;
  /** Host or device memory is exhausted. */
  readonly OUT_OF_MEMORY: 9;
  /** The run was cancelled. */
  readonly CANCELLED: 10;
  /** There is no device, or it failed. */
  readonly DEVICE: 11;
  /** An earlier failure left this handle unusable; it can only be destroyed. */
  readonly POISONED: 12;
  /** The handle was made before `fork`, and this is the child. */
  readonly FORKED: 13;
  /** A defect of the library. The message says where. */
  readonly INTERNAL: 14;
};

/** The type of a tensor's elements. The numbers are those of ONNX's `TensorProto.DataType`. Elements narrower than a byte (`INT4`, `UINT4`, `INT2`, `UINT2`, `FLOAT4E2M1`, `FLOAT6E2M3`, `FLOAT6E3M2`) take one byte each in memory; integers are sign-extended where signed. A `BOOL` is one byte; any byte but 0 is true. */
export declare const ElementType: {
  /** No type: where there is none to tell, or none to give. */
  readonly UNDEFINED: 0;
  readonly FLOAT: 1;
  readonly UINT8: 2;
  readonly INT8: 3;
  readonly UINT16: 4;
  readonly INT16: 5;
  readonly INT32: 6;
  readonly INT64: 7;
  readonly STRING: 8;
  readonly BOOL: 9;
  readonly FLOAT16: 10;
  readonly DOUBLE: 11;
  readonly UINT32: 12;
  readonly UINT64: 13;
  readonly COMPLEX64: 14;
  readonly COMPLEX128: 15;
  readonly BFLOAT16: 16;
  readonly FLOAT8E4M3FN: 17;
  readonly FLOAT8E4M3FNUZ: 18;
  readonly FLOAT8E5M2: 19;
  readonly FLOAT8E5M2FNUZ: 20;
  readonly UINT4: 21;
  readonly INT4: 22;
  readonly FLOAT4E2M1: 23;
  readonly FLOAT8E8M0: 24;
  readonly UINT2: 25;
  readonly INT2: 26;
  readonly FLOAT6E2M3: 27;
  readonly FLOAT6E3M2: 28;
};

/** What a value is. */
export declare const Kind: {
  /** Not known before the model runs. */
  readonly UNDEFINED: 0;
  /** Elements of one type in a rectangle of any rank. */
  readonly TENSOR: 1;
  /** Values of one type in order. */
  readonly SEQUENCE: 2;
  /** Integer or string keys, each with a value. */
  readonly MAP: 3;
  /** A value or none. */
  readonly OPTIONAL: 4;
};

/** How much a log message matters. */
export declare const LogLevel: {
  readonly DEBUG: 0;
  readonly INFO: 1;
  readonly WARNING: 2;
  readonly ERROR: 3;
};

/** A text of a log message. */
export declare const LogText: {
  /** What it says, for people. */
  readonly MESSAGE: 0;
  /** What it is about: "environment", "session", "provider", "tuning", "model_cache", "run" or "defect". Later versions may have others. */
  readonly CATEGORY: 1;
  /** Whose it is: the session's option "log_id", else the name of its model's file. */
  readonly SESSION: 2;
  /** In which run it was written: the run's option "tag". */
  readonly RUN: 3;
  /** The node that it is about. */
  readonly NODE: 4;
  /** Where in the library's source it was written, as "file:line". */
  readonly LOCATION: 5;
};

/** How a model file comes into memory. */
export declare const LoadMode: {
  /** Mapped: pages are read when needed and shared between processes. The file must not shrink while the session lives; a file that does ends the process with SIGBUS. */
  readonly MAP: 0;
  /** Read in whole: the file may change afterwards. */
  readonly READ: 1;
};

/** How far the model's graph is rewritten before it runs. No level changes what the model means. */
export declare const Optimization: {
  /** Only what running needs. */
  readonly NONE: 0;
  /** Constants and shapes are folded, dead code is removed. */
  readonly BASIC: 1;
  /** Fusions as well. The default. */
  readonly ALL: 2;
};

/** What happens to a node that none of the wanted providers can take. */
export declare const Fallback: {
  /** The CPU runs it. The default. */
  readonly CPU: 0;
  /** The session is refused with an error that names the node. */
  readonly ERROR: 1;
};

/** Memory, as a device sees it. */
export declare const MemoryKind: {
  /** The device's own. That of the CPU is the host's. */
  readonly DEVICE: 0;
  /** The host's, pinned for a GPU, which copies from and to it by itself: such a copy does not hold up the thread that queues it. */
  readonly PINNED: 1;
  /** The host's. */
  readonly HOST: 2;
};

/** What another API exported memory as. */
export declare const ExternalHandle: {
  /** A file descriptor of the driver's own kind, as Vulkan's `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT` gives. */
  readonly EXTERNAL_OPAQUE_FD: 0;
  /** A file descriptor of a dma-buf. */
  readonly EXTERNAL_DMA_BUF: 1;
  /** A `HANDLE` of Windows', as `VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT` gives. */
  readonly EXTERNAL_WIN32: 2;
};

/** Whether an artifact suits a device and options. */
export declare const ArtifactVerdict: {
  /** It was compiled for them. */
  readonly ARTIFACT_OPTIMAL: 0;
  /** It works; compiling it again would make it better. */
  readonly ARTIFACT_WORKS: 1;
  /** It cannot be used. */
  readonly ARTIFACT_UNFIT: 2;
};

/** How often an input or output of an operator may be there. */
export declare const Arity: {
  /** Once. */
  readonly REQUIRED: 0;
  /** Once or not at all. */
  readonly OPTIONAL: 1;
  /** Any number of times, none included. Allowed for the last one. */
  readonly VARIADIC: 2;
  /** Once or more. Allowed for the last one. */
  readonly VARIADIC_SOME: 3;
};

/** The type of an attribute. The numbers are those of ONNX's `AttributeProto.AttributeType`. */
export declare const AttributeType: {
  readonly FLOAT: 1;
  readonly INT: 2;
  readonly STRING: 3;
  readonly TENSOR: 4;
  readonly FLOATS: 6;
  readonly INTS: 7;
  readonly STRINGS: 8;
};

/** A text about where a node runs. */
export declare const PlacementFact: {
  /** The node's name. */
  readonly PLACEMENT_NODE: 0;
  /** The name of its operator. */
  readonly PLACEMENT_OPERATOR: 1;
  /** The provider that runs it: "cpu" or "hip". */
  readonly PLACEMENT_PROVIDER: 2;
  /** Why that one, for people. */
  readonly PLACEMENT_REASON: 3;
};

/** A text that the model file carries about itself. */
export declare const ModelText: {
  readonly PRODUCER_NAME: 0;
  readonly PRODUCER_VERSION: 1;
  readonly DOMAIN: 2;
  readonly GRAPH_NAME: 3;
  readonly DESCRIPTION: 4;
};

/** A count of what opening a session did. */
export declare const LoadCounter: {
  /** Bytes of files that were mapped. */
  readonly MAPPED_BYTES: 0;
  /** Bytes of files that were read into memory. */
  readonly READ_BYTES: 1;
  /** Bytes of weights that were copied because they were not aligned or had to be converted. */
  readonly COPIED_BYTES: 2;
  /** Bytes of weights in a layout made for a kernel. */
  readonly PACKED_BYTES: 3;
  /** The number of weights that were copied. */
  readonly COPIED_WEIGHTS: 4;
  /** Bytes of all these kinds that another session of the environment had already, and that both use. The other counts are then 0. */
  readonly SHARED_BYTES: 5;
};
