"""Makes a session by ONNX Runtime's C API, which does more than that of Python: arguments are the registration, the
provider, the plugin, the model, and what session.fail_on_suboptimal_compiled_model is. Says "opened", or the error."""

import ctypes
import pathlib
import sys
from ctypes import c_char_p, c_int, c_size_t, c_uint32, c_void_p

import onnxruntime

# Places of functions in the struct OrtApi, which never change.
PLACES = {
    "GetErrorMessage": 2,
    "CreateEnv": 3,
    "CreateSession": 7,
    "CreateSessionOptions": 10,
    "AddSessionConfigEntry": 130,
    "RegisterExecutionProviderLibrary": 301,
    "GetEpDevices": 303,
    "SessionOptionsAppendExecutionProvider_V2": 304,
    "EpDevice_EpName": 312,
}
VERSION = 24


class Api:
    def __init__(self):
        (file,) = (pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
        self.library = ctypes.CDLL(str(file))
        self.library.OrtGetApiBase.restype = ctypes.POINTER(c_void_p)
        get = ctypes.CFUNCTYPE(ctypes.POINTER(c_void_p), c_uint32)(self.library.OrtGetApiBase()[0])
        self.table = get(VERSION)

    def function(self, name, *types, result=c_void_p):
        return ctypes.CFUNCTYPE(result, *types)(self.table[PLACES[name]])

    def call(self, name, types, *arguments):
        status = self.function(name, *types)(*arguments)
        if status:
            message = self.function("GetErrorMessage", c_void_p, result=c_char_p)
            raise RuntimeError(message(status).decode())

    def make(self, name, types, *arguments):
        """What a function makes, whose place is its last argument."""
        made = c_void_p()
        self.call(name, (*types, c_void_p), *arguments, ctypes.addressof(made))
        return made


def main(registration, provider, plugin, model, fail_on_suboptimal):
    api = Api()
    pair = (c_void_p, c_char_p, c_char_p)
    env = api.make("CreateEnv", (c_int, c_char_p), 3, b"test")
    api.call("RegisterExecutionProviderLibrary", pair, env, registration.encode(), plugin.encode())
    devices, count = c_void_p(), c_size_t()
    places = (ctypes.addressof(devices), ctypes.addressof(count))
    api.call("GetEpDevices", (c_void_p, c_void_p, c_void_p), env, *places)
    found = ctypes.cast(devices, ctypes.POINTER(c_void_p))[: count.value]
    name = api.function("EpDevice_EpName", c_void_p, result=c_char_p)
    device = next(device for device in found if name(device) == provider.encode())
    options = api.make("CreateSessionOptions", ())
    entry = (b"session.fail_on_suboptimal_compiled_model", fail_on_suboptimal.encode())
    api.call("AddSessionConfigEntry", pair, options, *entry)
    one = (c_void_p * 1)(device)
    types = (c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t)
    arguments = (options, env, ctypes.addressof(one), 1, None, None, 0)
    api.call("SessionOptionsAppendExecutionProvider_V2", types, *arguments)
    try:
        api.make("CreateSession", (c_void_p, c_char_p, c_void_p), env, model.encode(), options)
        print("opened")
    except RuntimeError as error:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
