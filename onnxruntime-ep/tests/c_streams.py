"""Streams of a GPU by ONNX Runtime's C API, which does more than that of Python: the arguments are the plugin and the digits
model. Says "done", or what is wrong."""

import ctypes
import os
import sys
from ctypes import c_char_p, c_int, c_size_t, c_void_p

import numpy as np
import onnxruntime
from c_session import PLACES, Api

PLACES |= {
    "Run": 9,
    "CreateRunOptions": 39,
    "CreateTensorAsOrtValue": 48,
    "CreateTensorWithDataAsOrtValue": 49,
    "GetTensorMutableData": 51,
    "CreateCpuMemoryInfo": 69,
    "ReleaseValue": 96,
    "AddRunConfigEntry": 165,
    "GetEpApi": 317,
    "EpDevice_MemoryInfo": 374,
    "GetSharedAllocator": 376,
    "CreateSyncStreamForEpDevice": 383,
    "SyncStream_GetHandle": 384,
    "ReleaseSyncStream": 385,
    "CopyTensors": 386,
    "RunOptionsSetSyncStream": 413,
}
FLOAT = 1
# Whether the emulated GPU does its work when somebody waits for it, and not before.
DEFERRED = os.environ.get("AMDEMU_DEFER") == "1"
# What memory of a device is: the device's own, or the host's for the device.
OWN, HOST = 0, 5
# Places in OrtEpApi, in OrtSyncStreamImpl and in OrtSyncNotificationImpl.
GET_IMPL = 13
CREATE_NOTIFICATION, FLUSH = 3, 4
RELEASE, ACTIVATE, WAIT_ON_DEVICE, WAIT_ON_HOST = 1, 2, 3, 4


class Gpu:
    """The plugin's GPU, its memory and its streams."""

    def __init__(self, plugin):
        self.api = api = Api()
        self.env = api.make("CreateEnv", (c_int, c_char_p), 3, b"test")
        types = (c_void_p, c_char_p, c_char_p)
        api.call("RegisterExecutionProviderLibrary", types, self.env, b"rukh.virtual", plugin.encode())
        devices, count = c_void_p(), c_size_t()
        places = (ctypes.addressof(devices), ctypes.addressof(count))
        api.call("GetEpDevices", (c_void_p, c_void_p, c_void_p), self.env, *places)
        name = api.function("EpDevice_EpName", c_void_p, result=c_char_p)
        found = ctypes.cast(devices, ctypes.POINTER(c_void_p))[: count.value]
        self.device = next(it for it in found if name(it) == b"AMDGPUExecutionProvider")
        memory = api.function("EpDevice_MemoryInfo", c_void_p, c_int)
        self.allocators = {
            kind: api.make("GetSharedAllocator", (c_void_p, c_void_p), self.env, memory(self.device, kind))
            for kind in (OWN, HOST)
        }
        assert all(allocator.value for allocator in self.allocators.values())
        get_ep_api = ctypes.CFUNCTYPE(ctypes.POINTER(c_void_p))(api.table[PLACES["GetEpApi"]])
        self.get_impl = ctypes.CFUNCTYPE(c_void_p, c_void_p)(get_ep_api()[GET_IMPL])

    def tensor(self, kind, shape):
        sizes = (ctypes.c_int64 * len(shape))(*shape)
        types = (c_void_p, c_void_p, c_size_t, c_int)
        return self.api.make(
            "CreateTensorAsOrtValue", types, self.allocators[kind], ctypes.addressof(sizes), len(shape), FLOAT
        )

    def pinned(self, array):
        """A tensor in pinned memory, and the array over it."""
        value = self.tensor(HOST, array.shape)
        address = self.api.make("GetTensorMutableData", (c_void_p,), value)
        view = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), shape=array.shape)
        view[...] = array
        return value, view

    def over(self, array):
        """A tensor over an array's memory, which is not pinned."""
        memory = self.api.make("CreateCpuMemoryInfo", (c_int, c_int), 0, 0)
        sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
        types = (c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_int)
        arguments = (memory, array.ctypes.data, array.nbytes, ctypes.addressof(sizes), array.ndim, FLOAT)
        return self.api.make("CreateTensorWithDataAsOrtValue", types, *arguments)

    def release(self, value):
        self.api.function("ReleaseValue", c_void_p, result=None)(value)

    def stream(self):
        return self.api.make("CreateSyncStreamForEpDevice", (c_void_p, c_void_p), self.device, None)

    def copy(self, source, target, stream):
        pair = [(c_void_p * 1)(value) for value in (source, target)]
        types = (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)
        addresses = [ctypes.addressof(one) for one in pair]
        self.api.call("CopyTensors", types, self.env, *addresses, stream, 1)

    def call_impl(self, table, place, *arguments):
        """Calls a function of a stream or a notification, as ONNX Runtime does."""
        function = ctypes.cast(table, ctypes.POINTER(c_void_p))[place]
        types = [c_void_p] * (1 + len(arguments))
        assert not ctypes.CFUNCTYPE(c_void_p, *types)(function)(table, *arguments)

    def flush(self, stream):
        self.call_impl(self.get_impl(stream), FLUSH)

    def notification(self, stream):
        made = c_void_p()
        self.call_impl(self.get_impl(stream), CREATE_NOTIFICATION, ctypes.addressof(made))
        return made.value

    def session(self, model):
        options = self.api.make("CreateSessionOptions", ())
        one = (c_void_p * 1)(self.device)
        types = (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t)
        arguments = (options, self.env, ctypes.addressof(one), 1, None, None, 0)
        self.api.call("SessionOptionsAppendExecutionProvider_V2", types, *arguments)
        return self.api.make(
            "CreateSession", (c_void_p, c_char_p, c_void_p), self.env, model.encode(), options
        )

    def run_in(self, stream, session, names, source, target):
        """Gives a run to a stream, and does not wait for it."""
        options = self.api.make("CreateRunOptions", ())
        types = (c_void_p, c_char_p, c_char_p)
        entry = (b"disable_synchronize_execution_providers", b"1")
        self.api.call("AddRunConfigEntry", types, options, *entry)
        self.api.function("RunOptionsSetSyncStream", c_void_p, c_void_p, result=None)(options, stream)
        names = [(c_char_p * 1)(name.encode()) for name in names]
        values = [(c_void_p * 1)(value) for value in (source, target)]
        addresses = [ctypes.addressof(one) for one in (names[0], values[0], names[1], values[1])]
        types = (c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p)
        arguments = (session, options, *addresses[:2], 1, addresses[2], 1, addresses[3])
        self.api.call("Run", types, *arguments)


def two_streams_in_order(gpu):
    one, other = gpu.stream(), gpu.stream()
    handle = gpu.api.function("SyncStream_GetHandle", c_void_p)
    assert handle(one) and handle(other) and handle(one) != handle(other)
    there, too = gpu.tensor(OWN, [1000]), gpu.tensor(OWN, [1000])
    marks = [(gpu.notification(one), gpu.notification(other)) for _ in range(5)]
    # Before it is set a mark stands for nothing.
    gpu.call_impl(marks[0][1], WAIT_ON_HOST)
    gpu.call_impl(marks[0][1], WAIT_ON_DEVICE, one)
    sources = [gpu.pinned(np.arange(1000, dtype=np.float32) + step) for step in range(len(marks))]
    outputs = [gpu.pinned(np.zeros(1000, np.float32)) for _ in sources]
    for (source, _), (target, _), (written, read) in zip(sources, outputs, marks, strict=True):
        gpu.copy(source, there, one)
        gpu.call_impl(written, ACTIVATE)
        gpu.call_impl(written, WAIT_ON_DEVICE, other)
        gpu.copy(there, too, other)
        gpu.copy(too, target, other)
        gpu.call_impl(read, ACTIVATE)
        gpu.call_impl(read, WAIT_ON_DEVICE, one)
    if DEFERRED:
        assert not any(seen.any() for _, seen in outputs), "somebody waited"
    gpu.call_impl(marks[-1][1], WAIT_ON_HOST)
    for step, (_, seen) in enumerate(outputs):
        assert seen.tolist() == [n + step for n in range(1000)], f"step {step}: {seen[:4]}"
    for notification in (it for pair in marks for it in pair):
        function = ctypes.cast(notification, ctypes.POINTER(c_void_p))[RELEASE]
        ctypes.CFUNCTYPE(None, c_void_p)(function)(notification)
    for stream in (one, other):
        gpu.api.function("ReleaseSyncStream", c_void_p, result=None)(stream)


def host_memory_is_read_and_written_at_once(gpu):
    """The caller's own memory may change, and is looked at, right after the call."""
    stream, there = gpu.stream(), gpu.tensor(OWN, [1000])
    source, target = np.arange(1000, dtype=np.float32), np.zeros(1000, np.float32)
    gpu.copy(gpu.over(source), there, stream)
    source[...] = -1
    gpu.copy(there, gpu.over(target), stream)
    assert target.tolist() == list(range(1000)), target[:4]
    # A copy without a stream comes after what streams were given.
    pinned, _ = gpu.pinned(np.full(1000, 7, np.float32))
    gpu.copy(pinned, there, stream)
    gpu.copy(there, gpu.over(target), None)
    assert target.tolist() == [7] * 1000, target[:4]


def runs_are_in_the_stream(gpu, model):
    """Copy, run, copy, and one wait at the end: each sees what came before it."""
    reference = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = reference.get_inputs()[0].name, reference.get_outputs()[0].name
    session, stream, elsewhere = gpu.session(model), gpu.stream(), gpu.stream()
    random, outputs = np.random.default_rng(1), []
    wrong, _ = gpu.pinned(np.full((3, 1, 8, 8), 1e6, np.float32))
    for _ in range(6):
        images = random.random((3, 1, 8, 8), dtype=np.float32) * 16
        expected = reference.run(None, {names[0]: images})[0]
        source, _ = gpu.pinned(images)
        image, scores = gpu.tensor(OWN, images.shape), gpu.tensor(OWN, expected.shape)
        target, seen = gpu.pinned(np.zeros_like(expected))
        gpu.copy(source, image, stream)
        gpu.run_in(stream, session, names, image, scores)
        gpu.copy(scores, target, stream)
        for value in (source, image, scores):
            gpu.release(value)
        if DEFERRED and not outputs:
            assert not seen.any(), "somebody waited"
        # Another stream writes to memory that may be what was given back.
        again = gpu.tensor(OWN, images.shape)
        gpu.copy(wrong, again, elsewhere)
        gpu.flush(elsewhere)
        outputs.append((target, seen, expected))
    gpu.flush(stream)
    for _, seen, expected in outputs:
        np.testing.assert_allclose(seen, expected, rtol=1e-4, atol=1e-3)


def main(plugin, model):
    gpu = Gpu(plugin)
    two_streams_in_order(gpu)
    host_memory_is_read_and_written_at_once(gpu)
    runs_are_in_the_stream(gpu, model)
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
