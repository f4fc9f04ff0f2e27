"""Runs of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from . import _async, _values, facts
from ._calls import Call
from ._errors import CancelledError, DeviceError, InvalidInputError, RukhError
from ._library import Handle
from ._refusals import check_inputs, check_outputs, explained
from ._types import ValueType, parse_type
from .description import NodeArg
from .ports import arguments, texts_array
from .run_options import RunOptions
from .value import Value

T = TypeVar("T")

# The names of the inputs, and of the wanted outputs; None for all outputs.
_Names = tuple[tuple[str, ...], tuple[str, ...] | None]

# Combinations of names whose calls are kept.
_KEPT = 32


class Runs:
    """The part of a session that runs the model with what is given."""

    _handle: Handle
    _inputs: list[NodeArg]
    _outputs: list[NodeArg]
    _input_types: dict[str, ValueType]
    _required: frozenset[str]
    _overridable: list[NodeArg]
    _output_names: list[str]
    # Calls that no run uses at present. Threads take one each.
    _calls: dict[_Names, list[Call]]

    def _fall_back(self, error: DeviceError) -> None:
        raise NotImplementedError

    def _describe(self) -> None:
        """Asks the session once for what every run needs."""
        self._inputs = arguments(self._handle, "input")
        self._outputs = arguments(self._handle, "output")
        self._overridable = arguments(self._handle, "overridable")
        given = (*self._inputs, *self._overridable)
        self._input_types = {argument.name: parse_type(argument.type) for argument in given}
        self._output_names = [output.name for output in self._outputs]
        self._required = frozenset(
            argument.name for argument in self._inputs if not argument.type.startswith("optional")
        )
        self._calls = {}

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model; the wanted outputs (all of them for None and for an empty list) in their order.

        Inputs are read where they lie when they are C-contiguous arrays and not small. Outputs are arrays over memory
        that nothing else uses; lists, dicts and None for sequences, maps and optionals.
        """
        return self._run(output_names, input_feed, run_options, Call.arrays)

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, Value],
        run_options: RunOptions | None = None,
    ) -> list[Value]:
        """As `run`, with a `Value` for every output."""
        handles = self._run(output_names, input_dict_ort_values, run_options, Call.handles)
        return [Value(handle) for handle in handles]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs the model on a thread of the library and returns at once. When it has run,
        `callback(outputs, user_data, "")` is called on that thread; `callback([], user_data, message)` when
        it failed."""
        given, wanted = _names(output_names, input_feed)
        self._check(given, wanted)
        inputs = [_values.to_handle(thing, self._input_types[name]) for name, thing in input_feed.items()]
        options = None if run_options is None else run_options._handle
        outputs = texts_array(wanted or self._output_names)
        _async.start(self._handle, options, texts_array(given), inputs, outputs, callback, user_data)

    def _check(self, given: tuple[str, ...], wanted: tuple[str, ...] | None) -> None:
        check_inputs(given, self._input_types, self._required)
        check_outputs(wanted or (), self._output_names)

    def _run(
        self,
        output_names: Sequence[str] | None,
        feed: Mapping[str, Any],
        run_options: RunOptions | None,
        taken: Callable[[Call], list[T]],
    ) -> list[T]:
        """Runs the model; what is taken of the call that has its outputs."""
        names = _names(output_names, feed)
        free = self._free_calls(names)
        try:
            call = free.pop()
        except IndexError:
            call = self._new_call(names)
        as_arrays = taken is Call.arrays
        if as_arrays and (found := call.run_bound(feed.values(), run_options)) is not None:
            free.append(call)
            return found
        try:
            call.fill(feed.values())
            try:
                call.run(run_options)
            except RukhError as error:
                call = self._after(error, call, names, run_options)
        finally:
            call.empty()
        outputs = taken(call)
        if as_arrays:
            call.bind_alike(feed.values(), outputs)
        free.append(call)
        return outputs

    def _free_calls(self, names: _Names) -> list[Call]:
        """Where calls of these names are kept, once the names are found to be right."""
        try:
            return self._calls[names]
        except (KeyError, TypeError):
            # What is no name may have no hash.
            self._check(*names)
        if len(self._calls) >= _KEPT:
            self._calls.clear()
        return self._calls.setdefault(names, [])

    def _new_call(self, names: _Names) -> Call:
        given, wanted = names
        types = [self._input_types[name] for name in given]
        # The library's own memory is what a GPU copies from and to.
        binds = facts.device(self._handle)[0] == "cpu"
        return Call(self._handle, given, wanted or self._output_names, types, binds)

    def _after(self, error: RukhError, call: Call, names: _Names, options: RunOptions | None) -> Call:
        """The call that has the outputs after all, on another device; else raises the error in the words of ONNX
        Runtime."""
        if isinstance(error, InvalidInputError):
            raise explained(error, self._inputs, dict(zip(names[0], call.held()))) from None
        if isinstance(error, CancelledError):
            raise CancelledError(f"Exiting due to terminate flag being set to true: {error}") from None
        if not isinstance(error, DeviceError):
            raise error
        self._fall_back(error)
        again = self._new_call(names)
        again.hold(call.held())
        again.run(options)
        return again


def _names(output_names: Sequence[str] | None, feed: Mapping[str, Any]) -> _Names:
    if isinstance(output_names, str):
        raise TypeError(f"output_names is {output_names!r}; allowed are a list of names and None")
    return tuple(feed), tuple(output_names) if output_names else None
