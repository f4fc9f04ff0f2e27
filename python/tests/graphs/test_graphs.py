"""The kept cases, and the tools themselves."""

import numpy as np
import pytest
from onnx import numpy_helper
from properties.draw import Random

from .check import LEVELS, failure
from .generate import Sample, random_graph
from .keep import CASES, load, store
from .networks import network
from .reduce import reduce


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("path", sorted(CASES.glob("*.onnx")), ids=lambda path: path.stem)
def test_kept_case(path, level):
    assert failure(load(path), level, "cpu", Random(1)) is None


@pytest.mark.parametrize("make", [random_graph, network])
def test_equal_seeds_give_equal_graphs(make):
    first, second = make(7, 3), make(7, 3)
    assert first.model.SerializeToString() == second.model.SerializeToString()


def test_a_difference_is_found_and_reduced_to_its_node(tmp_path):
    """A weight that is changed behind the expected outputs' back."""
    for index in range(30):
        test = random_graph(11, index)
        nodes = [n for n in test.model.graph.node if n.op_type == "MatMul" and not n.domain]
        stored = {t.name: t for t in test.model.graph.initializer}
        nodes = [n for n in nodes if n.input[1] in stored]
        if not nodes or failure(test) is not None:
            continue
        weight = stored[nodes[0].input[1]]
        changed = numpy_helper.from_array(numpy_helper.to_array(weight) + 1, weight.name)
        weight.CopyFrom(changed)
        if failure(test) is None:
            continue
        smallest = reduce(test, lambda t: failure(t) is not None)
        assert [n.op_type for n in smallest.model.graph.node if n.op_type != "Constant"] == ["MatMul"]
        again = load(store(smallest, tmp_path, "case"))
        assert failure(again) == failure(smallest) is not None
        return
    pytest.fail("no graph with a product that can be changed")


def test_shapes_types_and_numbers_are_compared():
    test = random_graph(11, 1)
    assert failure(test) is None
    for wrong in (
        lambda y: y[None],
        lambda y: y.astype(np.complex64),
        lambda y: y + np.asarray(1, y.dtype) if y.dtype != np.bool_ else ~y,
    ):
        expected = [[wrong(y) for y in outputs] for outputs in test.expected]
        assert failure(Sample(test.model, test.feeds, test.outputs, expected)) is not None
