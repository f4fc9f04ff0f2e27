"""What a session tells of its model."""

from __future__ import annotations

from typing import NamedTuple


class NodeArg(NamedTuple):
    """An input or output of a model."""

    name: str
    type: str  # as the standard writes it: "tensor(float)"
    shape: list[int | str | None]  # a text names a size that runs choose; None has no name


class ModelMetadata(NamedTuple):
    """What the model file says about itself."""

    producer_name: str
    producer_version: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class Placement(NamedTuple):
    """Where a node runs, and why there."""

    node: str
    operator: str
    provider: str
    reason: str
    # The number of its device among those of the provider.
    device_id: int


class OrtEpAssignedNode(NamedTuple):
    """A node of the model."""

    name: str
    domain: str
    op_type: str


class OrtEpAssignedSubgraph(NamedTuple):
    """Nodes that one provider runs."""

    ep_name: str
    nodes: list[OrtEpAssignedNode]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        return self.nodes
