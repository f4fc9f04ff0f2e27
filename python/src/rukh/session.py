"""Sessions: a model, ready to run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from ctypes import byref, c_int64
from typing import Any

from . import _constants, facts, modelfile, placements
from ._errors import InvalidArgumentError
from ._library import borrowed, call, count, text
from ._runs import Runs
from .binding import IOBinding
from .description import ModelMetadata, NodeArg, OrtEpAssignedNode, OrtEpAssignedSubgraph, Placement
from .devices import OrtEpDevice, OrtMemoryInfo, get_ep_devices
from .enums import OrtAllocatorType, OrtMemType
from .options import SessionOptions
from .ports import texts
from .run_options import RunOptions
from .tuning import as_results, as_text
from .value import OrtValueVector, Value


class Session(Runs):
    """What `InferenceSession` can do once it is open."""

    _options: SessionOptions
    _provider_names: dict[str, str]
    _profiling_start_ns: int

    def get_providers(self) -> list[str]:
        raise NotImplementedError

    def _source(self) -> Any:
        raise NotImplementedError

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs the model with what is bound."""
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        iobinding._run(run_options)

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[Value],
        fetch_names: Sequence[str],
        fetches: OrtValueVector,
        fetch_devices: Sequence[Any],
    ) -> None:
        """Runs the model and puts the wanted outputs into `fetches`, on the devices that are wanted."""
        outputs = self.run_with_ort_values(fetch_names, dict(zip(feed_names, feeds)), run_options)
        for index, device in enumerate(fetch_devices):
            if index < len(outputs) and device is not None and device.device_type() != 0:
                outputs[index] = Value.ortvalue_from_numpy(outputs[index].numpy(), device)
        fetches[:] = outputs

    def io_binding(self) -> IOBinding:
        """A binding of inputs and outputs for runs of this session."""
        return IOBinding(self)

    def create_ortvalue_from_shape_and_type(
        self,
        shape: Sequence[int],
        element_type: Any,
        device_type: str,
        device_id: int = 0,
        vendor_id: int = -1,
    ) -> Value:
        """As `OrtValue.ortvalue_from_shape_and_type`."""
        return Value.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id)

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Inputs that have a value in the model, and that a run may give another."""
        return list(self._overridable)

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Where each input is best: on the host, from where a run takes it."""
        return [_host_memory() for _ in self._inputs]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        return [_host_memory() for _ in self._outputs]

    def get_input_epdevices(self) -> list[OrtEpDevice]:
        """The device that reads each input."""
        provider = self.get_providers()[0]
        devices = get_ep_devices()
        device = next((device for device in devices if device.ep_name == provider), devices[-1])
        return [device for _ in self._inputs]

    def get_modelmeta(self) -> ModelMetadata:
        version = c_int64()
        call("session_model_version", self._handle, byref(version), None)
        producer, producer_version, domain, graph, description = (
            borrowed("session_model_text", self._handle, which) or "" for which in _MODEL_TEXTS
        )
        properties = {}
        for index in range(count("session_property_count", self._handle)):
            key, value = texts(2, "session_property", self._handle, index)
            properties[key] = value
        graph_description = modelfile.read(self._source()).graph_description
        return ModelMetadata(
            producer,
            producer_version,
            graph,
            domain,
            description,
            graph_description,
            version.value,
            properties,
        )

    def get_placements(self) -> list[Placement]:
        """Where each node runs after the graph was rewritten, and why there."""
        return [
            placement._replace(provider=self._provider_names.get(placement.provider, placement.provider))
            for placement in placements.of(self._handle)
        ]

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """The nodes of each provider."""
        nodes: dict[str, list[OrtEpAssignedNode]] = {}
        for placement in self.get_placements():
            *domain, operator = placement.operator.rsplit(".", 1)
            node = OrtEpAssignedNode(placement.node, "".join(domain), operator)
            nodes.setdefault(placement.provider, []).append(node)
        return [OrtEpAssignedSubgraph(*item) for item in nodes.items()]

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """What was measured or given, as ONNX Runtime tells it; [] for a session that does not tune."""
        try:
            results = self.get_tuning_text()
        except InvalidArgumentError:
            return []
        return [as_results(self.get_providers()[0], results)]

    def set_tuning_results(
        self, results: str | Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False
    ) -> int:
        """Takes such results, or the text of `get_tuning_text`; how many were taken. Those of another device
        or version are ignored, and the log tells why; `error_on_invalid` makes that an error."""
        taken = 0
        for entry in [results] if isinstance(results, str) else results:
            if isinstance(entry, str):
                lines = entry
            elif entry.get("ep") in self.get_providers():
                lines = as_text(entry)
            elif error_on_invalid:
                raise RuntimeError(f"Cannot find execution provider {entry.get('ep')}")
            else:
                continue
            found = count("session_add_tuning_results", self._handle, lines.encode())
            if error_on_invalid and found < lines.count("\nresult "):
                raise RuntimeError(f"Failed to load TuningResults: {found} were taken; the log tells why")
            taken += found
        return taken

    def get_tuning_text(self) -> str:
        """What was measured or given, as text. Needs the GPU provider's option "tunable_op_enable"."""
        return text("session_tuning_results", self._handle)

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, by `time.monotonic_ns()`; 0 without profiling."""
        return self._profiling_start_ns

    def end_profiling(self) -> str:
        """Writes what the runs so far did as a Chrome trace; the name of the file, "" without
        `enable_profiling`.

        The name begins with `SessionOptions.profile_file_prefix`.
        """
        if not self._options.enable_profiling:
            return ""
        events = json.loads(text("session_profile", self._handle))
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        name = f"{self._options.profile_file_prefix}{stamp}_{os.getpid()}.json"
        name = _unused(name)
        with open(name, "w", encoding="utf-8") as file:
            # An event a line, as ONNX Runtime has it.
            found = events["traceEvents"] if isinstance(events, dict) else events
            file.write("[\n" + ",\n".join(json.dumps({"args": {}, **event}) for event in found) + "\n]\n")
        return name

    def plan(self) -> dict[str, Any]:
        """The steps of a run, what each reads and writes, and the memory of it."""
        return facts.plan(self._handle)

    def opsets(self) -> dict[str, int]:
        """The operator sets that the model imports, by domain."""
        return facts.opsets(self._handle)

    def load_counters(self) -> dict[str, int]:
        """What opening took: bytes that were mapped, read, copied, packed, or shared with another session; copied weights."""
        return facts.load_counters(self._handle)

    def device(self) -> tuple[str, int]:
        """The device that runs nodes, as provider ("hip" or "cpu") and number: the GPU when any node runs there."""
        return facts.device(self._handle)

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Taken for compatibility: the providers here have none."""

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Taken for compatibility: nothing is captured."""

    def _has_rank(self, output: str) -> bool:
        """Whether the model tells how many dimensions an output has."""
        rank = c_int64()
        call("session_output_shape", self._handle, self._output_names.index(output), None, 0, byref(rank))
        return rank.value >= 0


# In the order of the parameters of `ModelMetadata`.
_MODEL_TEXTS = (
    _constants.MODEL_PRODUCER_NAME,
    _constants.MODEL_PRODUCER_VERSION,
    _constants.MODEL_DOMAIN,
    _constants.MODEL_GRAPH_NAME,
    _constants.MODEL_DESCRIPTION,
)


def _host_memory() -> OrtMemoryInfo:
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_DEVICE_ALLOCATOR, 0, OrtMemType.DEFAULT)


def _unused(name: str) -> str:
    """The name, or with a number where a file has it already."""
    stem, number = name.removesuffix(".json"), 1
    while os.path.exists(name):
        name, number = f"{stem}_{number}.json", number + 1
    return name
