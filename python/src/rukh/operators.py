"""Operators that a program defines: a function over arrays stands for the nodes of a model.

    @rukh.operator("my.domain", "Scale", inputs={"x": "T"}, outputs={"y": "T"},
                   types={"T": ["float", "double"]}, attributes={"factor": 1.0})
    def scale(x, factor):
        return x * factor

    options = rukh.SessionOptions()
    options.add_operator(scale)
"""

from __future__ import annotations

import ctypes
import enum
import itertools
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_char_p, c_float, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, NamedTuple

import numpy as np

from . import _constants, _dlpack
from ._errors import RukhError
from ._library import Handle, call, count, make, text
from ._types import KIND_TENSOR, STRING, element_of
from ._values import element_type_of, kind_of, to_handle, to_python

_NodeCallback = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p)
_Release = ctypes.CFUNCTYPE(None, c_void_p)


class AttributeType(enum.IntEnum):
    """The types of attributes, with the numbers of ONNX's `AttributeProto.AttributeType`."""

    FLOAT = _constants.ATTRIBUTE_FLOAT
    INT = _constants.ATTRIBUTE_INT
    STRING = _constants.ATTRIBUTE_STRING
    TENSOR = _constants.ATTRIBUTE_TENSOR
    FLOATS = _constants.ATTRIBUTE_FLOATS
    INTS = _constants.ATTRIBUTE_INTS
    STRINGS = _constants.ATTRIBUTE_STRINGS


class Required(NamedTuple):
    """In place of an attribute's default: each node must give it."""

    type: AttributeType


class _Lent:
    """A value that is lent for the time of a call; calls take it as they take a `Handle`."""

    __slots__ = ("_as_parameter_",)

    def __init__(self, address: int) -> None:
        self._as_parameter_ = address


class _LentTensor(_Lent):
    """A tensor on the CPU that is lent for the time of a call, for other libraries to take."""

    __slots__ = ()

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if stream is not None:
            raise ValueError(f"stream is {stream!r}; for the CPU only None is allowed")
        if dl_device is not None and tuple(dl_device) != _dlpack.CPU_DEVICE:
            raise BufferError(f"dl_device is {dl_device}; allowed is the CPU, {_dlpack.CPU_DEVICE}")
        handle: Any = to_handle(_copied(self)) if copy else self
        return _dlpack.export_tensor(handle, max_version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _dlpack.CPU_DEVICE


class _Functions(NamedTuple):
    """What the library calls; without the handle, which goes with the last who can add the operator."""

    compute: Callable[..., Any]
    shapes: Callable[..., Any] | None
    attributes: dict[str, Any]
    from_dlpack: Callable[[Any], Any] | None

    def argument(self, address: int | None) -> Any:
        """What the function gets for an input."""
        if address is None:
            return None
        lent = _LentTensor(address)
        plain = self.from_dlpack is not None and kind_of(lent) == KIND_TENSOR  # type: ignore[arg-type]
        if plain and element_type_of(lent) != STRING:  # type: ignore[arg-type]
            return self.from_dlpack(lent)  # type: ignore[misc]
        return _copied(lent)


class Operator:
    """What `operator` makes of a function, which can still be called."""

    def __init__(
        self,
        domain: str,
        name: str,
        function: Callable[..., Any],
        inputs: Mapping[str, str],
        outputs: Mapping[str, str],
        types: Mapping[str, Sequence[Any]],
        attributes: Mapping[str, Any],
        shapes: Callable[..., Any] | None,
        since: int,
        pure: bool = False,
        from_dlpack: Callable[[Any], Any] | None = None,
    ) -> None:
        self.domain, self.name, self.since = domain, name, since
        self._function = function
        number = next(_numbers)
        _operators[number] = _Functions(function, shapes, dict(attributes), from_dlpack)
        handle = make("operator", "operator_create", domain.encode(), name.encode(), since, number, _release)
        self._handle: Handle = handle
        for variable, allowed in types.items():
            elements = [element_of(element) for element in allowed]
            array = (c_int32 * len(elements))(*elements)
            call("operator_add_type_variable", handle, variable.encode(), array, len(elements))
        for ports, adder in ((inputs, "operator_add_input"), (outputs, "operator_add_output")):
            for port, ty in ports.items():
                arity = _ARITIES.get(port[-1:], _constants.ARITY_REQUIRED)
                plain = port[:-1] if arity else port
                call(adder, handle, plain.encode(), ty.encode(), arity)
        for attribute, default in attributes.items():
            _add_attribute(handle, attribute, default)
        if shapes is not None:
            call("operator_set_shape_function", handle, _tell_shapes)
        call("operator_set_kernel", handle, _create, _compute)
        call("operator_set_pure", handle, int(pure))

    def __call__(self, *arguments: Any, **attributes: Any) -> Any:
        return self._function(*arguments, **attributes)


def operator(
    domain: str,
    name: str,
    *,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    types: Mapping[str, Sequence[Any]] | None = None,
    attributes: Mapping[str, Any] | None = None,
    shapes: Callable[..., Any] | None = None,
    since: int = 1,
    pure: bool = False,
    from_dlpack: Callable[[Any], Any] | None = None,
) -> Callable[[Callable[..., Any]], Operator]:
    """Makes an operator of a function, for `SessionOptions.add_operator`.

    `inputs`, `outputs`: names with types: a variable of `types`, or an element type ("float", "int64"). A name that ends
    with "?" is optional, with "*" (any number) or "+" (one or more) variadic; only the last may be variadic. `types`:
    for each variable the element types that it may be. `attributes`: names with defaults (a number, a text, an array, a
    list of numbers or texts); in place of a default `rukh.Required(rukh.AttributeType.INT)` and such, where nodes must give it. `shapes`: a function
    of the inputs' shapes (tuples, with None for what is not known) and the attributes that gives the output's shape, or a
    list of shapes; without it the arrays decide. `pure`: the same inputs and attributes give the same outputs and the
    function does nothing else, so that nodes whose inputs are constants are computed when the model is opened.

    The function gets the inputs as arrays of its own (None where a node leaves one out) and the attributes by name, and
    returns the output, or a tuple of outputs: arrays, or objects with `__dlpack__`. An exception becomes the error of the
    run. It is called from any thread.

    `from_dlpack`: makes the function's inputs of tensors without a copy, such as `torch.from_dlpack` or
    `numpy.from_dlpack`. They are lent: the function must not write into them, and must keep none of them, nor a view of
    one, when it has returned; a run in which it does is an error. It may return them. What it returns is taken without a
    copy, too, but where `shapes` tells the output's shape. Strings and sequences come as arrays nevertheless.
    """

    def decorate(function: Callable[..., Any]) -> Operator:
        return Operator(
            domain,
            name,
            function,
            inputs,
            outputs,
            types or {},
            attributes or {},
            shapes,
            since,
            pure,
            from_dlpack,
        )

    return decorate


_ARITIES = {
    "?": _constants.ARITY_OPTIONAL,
    "*": _constants.ARITY_VARIADIC,
    "+": _constants.ARITY_VARIADIC_SOME,
}

# Those that the library still may call, by number.
_operators: dict[int, _Functions] = {}
_numbers = itertools.count(1)
# The attributes of nodes, by number.
_nodes: dict[int, dict[str, Any]] = {}


def _add_attribute(handle: Handle, name: str, default: Any) -> None:
    key = name.encode()
    if isinstance(default, Required):
        call("operator_add_attribute", handle, key, int(default.type), 1)
        return
    kind, data, length = _default(default)
    call("operator_add_attribute_with_default", handle, key, int(kind), data, length)


def _default(value: Any) -> tuple[AttributeType, Any, int]:
    """The type of a default, its C data and its length."""
    if isinstance(value, np.ndarray):
        return AttributeType.TENSOR, to_handle(value), 1
    if isinstance(value, str):
        return AttributeType.STRING, c_char_p(value.encode()), 1
    if isinstance(value, (bool, int, np.integer)):
        return AttributeType.INT, byref(c_int64(int(value))), 1
    if isinstance(value, (float, np.floating)):
        return AttributeType.FLOAT, byref(c_float(value)), 1
    items = list(value)
    if items and all(isinstance(item, str) for item in items):
        return AttributeType.STRINGS, (c_char_p * len(items))(*(item.encode() for item in items)), len(items)
    if all(isinstance(item, (int, np.integer)) for item in items):
        return AttributeType.INTS, (c_int64 * len(items))(*items), len(items)
    return AttributeType.FLOATS, (c_float * len(items))(*items), len(items)


def _attributes_of(node: int, declared: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a node, in Python's types."""
    found: dict[str, Any] = {}
    for name, default in declared.items():
        kind = default.type if isinstance(default, Required) else _default(default)[0]
        key = name.encode()
        if kind == AttributeType.INT:
            integer = c_int64()
            call("node_info_attribute_int", node, key, byref(integer))
            found[name] = integer.value
        elif kind == AttributeType.FLOAT:
            number = c_float()
            call("node_info_attribute_float", node, key, byref(number))
            found[name] = number.value
        elif kind == AttributeType.STRING:
            found[name] = text("node_info_attribute_string", node, key)
        elif kind == AttributeType.STRINGS:
            length = count("node_info_attribute_string_count", node, key)
            found[name] = [text("node_info_attribute_string_at", node, key, i) for i in range(length)]
        elif kind == AttributeType.TENSOR:
            tensor = c_void_p()
            call("node_info_attribute_tensor", node, key, byref(tensor))
            found[name] = np.array(to_python(_Lent(tensor.value or 0)))  # type: ignore[arg-type]
        else:
            values, length_out = c_void_p(), c_size_t()
            floats = kind == AttributeType.FLOATS
            getter = "node_info_attribute_floats" if floats else "node_info_attribute_ints"
            call(getter, node, key, byref(values), byref(length_out))
            item = c_float if floats else c_int64
            pointer = ctypes.cast(values, ctypes.POINTER(item))
            found[name] = [pointer[i] for i in range(length_out.value)]
    return found


def _failing(kind: str, handle: int, error: Exception) -> int:
    """Tells the library why a function failed."""
    message = str(error) or type(error).__name__
    if not isinstance(error, RukhError):
        message = f"{type(error).__name__}: {message}"
    call(f"{kind}_set_error", handle, message.replace("\0", " ").encode())
    return _constants.ERROR_INVALID_DATA


def _shapes_of(node: int, number: int) -> int:
    try:
        own = _operators[number]
        shapes = own.shapes
        assert shapes is not None
        inputs = [_input_shape(node, i) for i in range(count("node_info_input_count", node))]
        told = shapes(*inputs, **_attributes_of(node, own.attributes))
        if not isinstance(told, list):
            told = [told]
        for index, shape in enumerate(told):
            if shape is None:
                continue
            dims = (c_int64 * len(shape))(*(-1 if dim is None else dim for dim in shape))
            call("node_info_set_output_shape", node, index, dims, len(shape))
    except Exception as error:
        return _failing("node_info", node, error)
    return 0


def _input_shape(node: int, index: int) -> tuple[int | None, ...] | None:
    given, rank = c_int32(), c_int64()
    call("node_info_has_input", node, index, byref(given))
    if not given.value:
        return None
    call("node_info_input_shape", node, index, None, 0, byref(rank))
    if rank.value < 0:
        return None
    dims = (c_int64 * rank.value)()
    call("node_info_input_shape", node, index, dims, rank.value, None)
    return tuple(None if dim < 0 else dim for dim in dims)


def _made(node: int, number: int) -> int:
    try:
        own = next(_numbers)
        _nodes[own] = _attributes_of(node, _operators[number].attributes)
        call("node_info_set_state", node, own, _release_node)
    except Exception as error:
        return _failing("node_info", node, error)
    return 0


def _computed(context: int, number: int) -> int:
    try:
        state = c_void_p()
        call("kernel_context_state", context, byref(state))
        own = _operators[number]
        inputs = []
        for index in range(count("kernel_context_input_count", context)):
            value = c_void_p()
            call("kernel_context_input", context, index, byref(value))
            inputs.append(own.argument(value.value))
        found = own.compute(*inputs, **_nodes[state.value or 0])
        outputs = found if isinstance(found, tuple) else (found,)
        for index in range(min(len(outputs), count("kernel_context_output_count", context))):
            call("kernel_context_set_output", context, index, to_handle(outputs[index]))
    except Exception as error:
        return _failing("kernel_context", context, error)
    return 0


def _copied(lent: Any) -> Any:
    """What is lent, copied: the function may keep what it gets."""
    value = to_python(lent)
    return np.array(value) if kind_of(lent) == KIND_TENSOR else value


def _forget(number: int | None, pop: Any = _operators.pop) -> None:
    pop(number or 0, None)


def _forget_node(number: int | None, pop: Any = _nodes.pop) -> None:
    pop(number or 0, None)


_tell_shapes, _create, _compute = _NodeCallback(_shapes_of), _NodeCallback(_made), _NodeCallback(_computed)
_release, _release_node = _Release(_forget), _Release(_forget_node)

# The library may call them as late as it likes, so that they must never be freed.
for _function in (_tell_shapes, _create, _compute, _release, _release_node):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))
