#!/usr/bin/env python3
"""What a run through ONNX Runtime with rukh's plugin, or through rukh in ONNX Runtime's place, costs more than one through
rukh's own C API.

    plugin_overhead.py --plugin librukh_onnxruntime_ep.so --library librukh.so MODEL [--runs N] [--most MICROSECONDS]
    plugin_overhead.py --drop-in libonnxruntime.so.1 --library librukh.so MODEL [--runs N] [--most MICROSECONDS]

Both C APIs are called in turns, through ctypes, which costs both the same: the model's only input goes in from host
memory, the outputs come back as new tensors. librukh is the one that the other library is linked to.
"""

import argparse
import ctypes
import pathlib
import statistics
import time
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p

import numpy as np
import onnxruntime

# Positions in OrtApi, which never change.
ERROR_MESSAGE, CREATE_ENV, CREATE_SESSION, RUN, SESSION_OPTIONS = 2, 3, 7, 9, 10
CREATE_TENSOR, CPU_MEMORY, RELEASE_VALUE = 49, 69, 96
REGISTER, GET_DEVICES, APPEND, EP_NAME = 301, 303, 304, 312
FLOAT = 1
NAME = b"RukhCPUExecutionProvider"


class OnnxRuntime:
    """The model in ONNX Runtime on the plugin, or in the library in its place."""

    def __init__(self, plugin, drop_in, model, names, values):
        (library,) = (
            [drop_in]
            if drop_in
            else pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*")
        )
        base = ctypes.CDLL(str(library)).OrtGetApiBase
        base.restype = POINTER(c_void_p)
        get_api = ctypes.CFUNCTYPE(POINTER(c_void_p), ctypes.c_uint32)(base()[0])
        self.table = get_api(24)
        self.environment = self.make(CREATE_ENV, c_int(3), b"overhead")
        options = self.make(SESSION_OPTIONS)
        if plugin:
            self.append(plugin, options)
        self.session = self.make(CREATE_SESSION, self.environment, str(model).encode(), options)
        memory = self.make(CPU_MEMORY, c_int(0), c_int(0))
        shape = (c_int64 * values.ndim)(*values.shape)
        data = c_void_p(values.ctypes.data)
        size, rank = c_size_t(values.nbytes), c_size_t(values.ndim)
        value = self.make(CREATE_TENSOR, memory, data, size, shape, rank, c_int(FLOAT))
        self.inputs, self.input_names = (c_void_p * 1)(value), (c_char_p * 1)(names[0])
        self.outputs, self.output_names = (c_void_p * 1)(), (c_char_p * 1)(names[1])
        status = ctypes.CFUNCTYPE(c_void_p, *[c_void_p] * 4, c_size_t, c_void_p, c_size_t, c_void_p)
        self.run_function = status(self.table[RUN])
        self.release = ctypes.CFUNCTYPE(None, c_void_p)(self.table[RELEASE_VALUE])

    def append(self, plugin, options):
        self.call(REGISTER, self.environment, NAME, str(plugin).encode())
        devices, count = POINTER(c_void_p)(), c_size_t()
        self.call(GET_DEVICES, self.environment, byref(devices), byref(count))
        name = ctypes.CFUNCTYPE(c_char_p, c_void_p)(self.table[EP_NAME])
        chosen = (c_void_p * 1)(next(devices[i] for i in range(count.value) if name(devices[i]) == NAME))
        self.call(APPEND, options, self.environment, chosen, c_size_t(1), None, None, c_size_t(0))

    def call(self, slot, *arguments):
        status = ctypes.CFUNCTYPE(c_void_p)(self.table[slot])(*arguments)
        if status:
            message = ctypes.CFUNCTYPE(c_char_p, c_void_p)(self.table[ERROR_MESSAGE])
            raise SystemExit(message(status).decode())

    def make(self, slot, *arguments):
        made = c_void_p()
        self.call(slot, *arguments, byref(made))
        return made.value and c_void_p(made.value)

    def run(self):
        self.outputs[0] = None
        failed = self.run_function(
            self.session, None, self.input_names, self.inputs, 1, self.output_names, 1, self.outputs
        )
        assert not failed
        self.release(self.outputs[0])


class Rukh:
    """The model in rukh's own C API."""

    def __init__(self, library, model, names, values):
        self.library = ctypes.CDLL(str(library))
        self.environment = self.make("environment_create", None)
        self.options = self.make("session_options_create")
        self.session = self.make("session_create", self.environment, str(model).encode(), self.options)
        shape = (c_int64 * values.ndim)(*values.shape)
        data, size = c_void_p(values.ctypes.data), c_size_t(values.nbytes)
        value = self.make(
            "value_create_tensor_over", c_int(FLOAT), shape, c_size_t(values.ndim), data, size, None, None
        )
        self.inputs, self.input_names = (c_void_p * 1)(value.value), (c_char_p * 1)(names[0])
        self.outputs, self.output_names = (c_void_p * 1)(), (c_char_p * 1)(names[1])
        self.run_function = self.library.rukh_session_run
        self.run_function.argtypes = [*[c_void_p] * 4, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p]
        self.release = self.library.rukh_value_destroy
        self.release.argtypes = [c_void_p]

    def make(self, function, *arguments):
        made = c_void_p()
        failed = getattr(self.library, f"rukh_{function}")(*arguments, byref(made), None)
        assert not failed, f"rukh_{function}: {failed}"
        return made

    def run(self):
        failed = self.run_function(
            self.session, None, self.input_names, self.inputs, 1, self.output_names, 1, self.outputs, None
        )
        assert not failed
        self.release(self.outputs[0])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    through = parser.add_mutually_exclusive_group(required=True)
    through.add_argument("--plugin", type=pathlib.Path)
    through.add_argument("--drop-in", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--most", type=float, help="fail above so many µs")
    parser.add_argument("model", type=pathlib.Path)
    options = parser.parse_args()
    described = onnxruntime.InferenceSession(str(options.model), providers=["CPUExecutionProvider"])
    shape = [it if isinstance(it, int) else 1 for it in described.get_inputs()[0].shape]
    values = np.random.default_rng(1).random(shape, dtype=np.float32)
    names = described.get_inputs()[0].name.encode(), described.get_outputs()[0].name.encode()
    del described
    sides = [
        Rukh(options.library, options.model, names, values),
        OnnxRuntime(options.plugin, options.drop_in, options.model, names, values),
    ]
    times = [[], []]
    for _ in range(options.runs):
        for side, list_ in zip(sides, times, strict=True):
            start = time.perf_counter_ns()
            side.run()
            list_.append((time.perf_counter_ns() - start) / 1000)
    own, other = (statistics.median(list_) for list_ in times)
    what = "the plugin" if options.plugin else "libonnxruntime.so.1"
    print(f"rukh {own:.1f} µs, through {what} {other:.1f} µs: {other - own:.1f} µs more")
    if options.most is not None and other - own > options.most:
        raise SystemExit(f"more than {options.most} µs")


if __name__ == "__main__":
    main()
