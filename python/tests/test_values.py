"""Values: every element type, no copies, who keeps what alive, DLPack, io bindings."""

import gc
import weakref

import ml_dtypes
import numpy as np
import pytest
import rukh
from models import model
from onnx import TensorProto, helper
from rukh import _types, _values

IDENTITY = model([("Identity", ["x"], ["y"])], x=[3], y=[3])

NUMBERS = [number for number in _types.DTYPE_OF if number != _types.STRING]


@pytest.mark.parametrize("element", NUMBERS)
def test_every_element_type_goes_in_and_out(element):
    dtype = _types.DTYPE_OF[element]
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)
    session = rukh.InferenceSession(
        model([("Identity", ["x"], ["y"])], opset=25, x=(element, [2, 3]), y=(element, [2, 3]))
    )
    (y,) = session.run(None, {"x": array})
    assert y.dtype == dtype and y.shape == (2, 3)
    assert y.tobytes() == array.tobytes()


@pytest.mark.parametrize("element", [TensorProto.UINT4, TensorProto.INT4, TensorProto.FLOAT4E2M1])
def test_a_scalar_narrower_than_a_byte(element):
    session = rukh.InferenceSession(
        model([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], opset=25, x=(element, []), y=[])
    )
    for value in (0, 1, 2, 4):
        assert session.run(None, {"x": np.asarray(value).astype(_types.DTYPE_OF[element])})[0] == value


@pytest.mark.parametrize(
    "element, wide, values",
    [
        (TensorProto.INT4, np.int8, [-8, -1, 0, 7]),
        (TensorProto.UINT4, np.uint8, [0, 1, 8, 15]),
        (TensorProto.INT2, np.int8, [-2, -1, 0, 1]),
        (TensorProto.UINT2, np.uint8, [0, 1, 2, 3]),
        (TensorProto.FLOAT4E2M1, np.float32, [-6, -0.5, 0, 6]),
    ],
)
def test_elements_narrower_than_a_byte(element, wide, values):
    wide_element = _types.element_of(wide)
    session = rukh.InferenceSession(
        model(
            [helper.make_node("Cast", ["x"], ["y"], to=wide_element), ("Identity", ["x"], ["z"])],
            opset=25,
            x=(element, [4]),
            y=(wide_element, [4]),
            z=(element, [4]),
        )
    )
    array = np.array(values).astype(_types.DTYPE_OF[element])
    y, z = session.run(None, {"x": array})
    assert y.tolist() == values
    assert z.astype(np.float32).tolist() == values and (z == array).all()


def test_strings_go_in_and_out():
    session = rukh.InferenceSession(
        model([("Identity", ["x"], ["y"])], x=(TensorProto.STRING, [2, 2]), y=(TensorProto.STRING, [2, 2]))
    )
    texts = [["", "a\0b"], ["grün", "x" * 1000]]
    for array in (
        np.array(texts, object),
        texts,
        np.array(texts),
        np.array([["", b"a\0b"], texts[1]], object),
    ):
        (y,) = session.run(None, {"x": array})
        assert y.dtype == object and y.tolist() == texts


def test_sequences_maps_and_optionals():
    sequence = rukh.Value([np.zeros(2, np.float32), np.ones((1, 3), np.float32)])
    assert sequence.is_tensor_sequence() and sequence.data_type() == "seq(tensor(float))"
    assert [item.shape for item in sequence.to_python()] == [(2,), (1, 3)]
    numbers = rukh.Value({1: np.zeros(1, np.float32), 5: np.ones(1, np.float32)})
    assert {key: item.tolist() for key, item in numbers.to_python().items()} == {1: [0], 5: [1]}
    texts = rukh.Value({"a": np.zeros(1, np.float32)})
    assert list(texts.to_python()) == ["a"]
    none = rukh.Value(None)
    assert not none.has_value() and none.to_python() is None
    assert sequence.has_value()


def test_sequences_and_optionals_through_a_model():
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    sequence = helper.make_sequence_type_proto(tensor)
    session = rukh.InferenceSession(
        model([("SequenceLength", ["s"], ["n"])], s=sequence, n=(TensorProto.INT64, []))
    )
    assert session.get_inputs()[0].type == "seq(tensor(float))"
    for items in ([], [[1.0]], [np.ones(1, np.float32)] * 3):
        assert session.run(None, {"s": items})[0] == len(items)
    optional = helper.make_optional_type_proto(tensor)
    session = rukh.InferenceSession(
        model([("OptionalHasElement", ["o"], ["has"])], o=optional, has=(TensorProto.BOOL, []))
    )
    for given, expected in ((None, False), (np.ones(2, np.float32), True), (rukh.Value(None), False)):
        assert session.run(None, {"o": given})[0] == expected


def test_plain_python_takes_the_type_of_the_model():
    session = rukh.InferenceSession(IDENTITY)
    (y,) = session.run(None, {"x": [1, 2, 3]})
    assert y.dtype == np.float32 and y.tolist() == [1, 2, 3]


ARRAYS = {
    "strided": np.arange(6, dtype=np.float32)[::2],
    "reversed": np.arange(3, dtype=np.float32)[::-1],
    "big-endian": np.arange(3, dtype=">f4"),
    "unaligned": np.frombuffer(b"\0" + np.arange(3, dtype=np.float32).tobytes(), np.uint8)[1:].view(
        np.float32
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_cannot_be_shared_are_copied(name):
    (y,) = rukh.InferenceSession(IDENTITY).run(None, {"x": ARRAYS[name]})
    assert y.tolist() == ARRAYS[name].tolist()


def test_inputs_are_shared_and_kept_alive_while_they_are_used():
    array = np.arange(3, dtype=np.float32)
    gone = weakref.ref(array)
    value = rukh.Value.ortvalue_from_numpy(array)
    assert value.data_ptr() == array.ctypes.data
    array[0] = 7
    del array
    gc.collect()
    assert gone() is not None and value.numpy().tolist() == [7, 1, 2]
    del value
    gc.collect()
    assert gone() is None


def test_outputs_keep_their_memory_and_share_none():
    session = rukh.InferenceSession(IDENTITY)
    x = np.arange(3, dtype=np.float32)
    y = session.run(None, {"x": x})[0][1:]
    assert not np.shares_memory(x, y)
    del session
    gc.collect()
    for _ in range(10):
        rukh.InferenceSession(IDENTITY).run(None, {"x": np.zeros(3, np.float32)})
    assert y.tolist() == [1, 2]
    y[0] = 5
    assert y.tolist() == [5, 2]


def test_nothing_is_kept_after_runs_and_failures():
    session = rukh.InferenceSession(IDENTITY)
    before = len(_values._owners)
    for _ in range(3):
        session.run(None, {"x": np.zeros(3, np.float32)})
        with pytest.raises(rukh.InvalidInputError):
            session.run(None, {"x": np.zeros(4, np.float32)})
    gc.collect()
    assert len(_values._owners) == before


def test_value_describes_itself():
    value = rukh.Value.ortvalue_from_shape_and_type([2, 0], np.int8)
    assert (value.shape(), value.data_type(), value.element_type()) == ([2, 0], "tensor(int8)", 3)
    assert value.is_tensor() and value.device_name() == "cpu" and value.numpy().shape == (2, 0)
    scalar = rukh.OrtValue.ortvalue_from_numpy(np.float32(3))
    assert scalar.shape() == [] and scalar.numpy() == 3
    scalar.update_inplace(np.array(4, np.float32))
    assert scalar.numpy() == 4
    with pytest.raises(ValueError, match="float64"):
        scalar.update_inplace(np.array(4.0))
    with pytest.raises(ValueError, match="abacus"):
        rukh.Value.ortvalue_from_numpy(np.zeros(1), "abacus")
    assert rukh.Value.ortvalue_from_shape_and_type([1], "bfloat16").numpy().dtype == ml_dtypes.bfloat16


def test_dlpack_shares_memory_both_ways():
    value = rukh.Value(np.arange(4, dtype=np.float32))
    array = np.from_dlpack(value)
    assert array.ctypes.data == value.data_ptr()
    del value
    gc.collect()
    assert array.tolist() == [0, 1, 2, 3]
    source = np.arange(6, dtype=np.int64).reshape(2, 3)
    back = rukh.Value.from_dlpack(source)
    assert back.data_ptr() == source.ctypes.data and back.numpy().tolist() == source.tolist()


def test_dlpack_capsules():
    value = rukh.Value(np.arange(4, dtype=np.float32))
    value.__dlpack__()  # never taken, so that its destructor releases the tensor
    value.__dlpack__(max_version=(1, 0))
    for version in (None, (1, 0)):
        capsule = value.__dlpack__(max_version=version)
        assert rukh.Value.from_dlpack(capsule).data_ptr() == value.data_ptr()
        with pytest.raises(TypeError, match="nobody has taken"):
            rukh.Value.from_dlpack(capsule)
    copied = rukh.Value.from_dlpack(value.__dlpack__(copy=True))
    assert copied.data_ptr() != value.data_ptr() and copied.numpy().tolist() == [0, 1, 2, 3]
    with pytest.raises(BufferError):
        value.__dlpack__(dl_device=(2, 0))
    with pytest.raises(rukh.UnsupportedError):
        rukh.Value(np.array(["text"])).__dlpack__()


def test_io_binding_reads_and_writes_in_place():
    session = rukh.InferenceSession(
        model([("Add", ["x", "x"], ["y"]), ("Neg", ["x"], ["z"])], x=["n"], y=["n"], z=["n"])
    )
    x, y = np.ones(3, np.float32), np.zeros(3, np.float32)
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_cpu_output("y", y)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    assert y.tolist() == [2, 2, 2]
    before = binding.copy_outputs_to_cpu()
    x[:] = 5
    session.run_with_iobinding(binding, rukh.RunOptions())
    assert y.tolist() == [10, 10, 10]
    assert [value.numpy().tolist() for value in binding.get_outputs()] == [[10] * 3, [-5] * 3]
    assert [array.tolist() for array in before] == [[2] * 3, [-1] * 3]


def test_io_binding_over_addresses_and_values():
    session = rukh.InferenceSession(IDENTITY)
    x, y = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    session.run_with_iobinding(binding)
    assert y.tolist() == [0, 1, 2]
    target = rukh.Value.ortvalue_from_shape_and_type([3])
    binding.clear_binding_outputs()
    assert binding.get_outputs() == []
    binding.bind_ortvalue_input("x", rukh.Value(np.full(3, 4, np.float32)))
    binding.bind_ortvalue_output("y", target)
    session.run_with_iobinding(binding)
    assert target.numpy().tolist() == [4, 4, 4]
    (value,) = session.run_with_ort_values(None, {"x": target})
    assert value.numpy().tolist() == [4, 4, 4]


def test_io_binding_errors():
    session = rukh.InferenceSession(IDENTITY)
    binding = session.io_binding()
    with pytest.raises(rukh.NotFoundError, match="nothing"):
        binding.bind_cpu_input("nothing", np.zeros(3, np.float32))
    binding.bind_output("y")
    with pytest.raises(rukh.InvalidInputError, match="x"):
        session.run_with_iobinding(binding)
    fixed = np.zeros(3, np.float32)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        binding.bind_cpu_output("y", fixed)
    with pytest.raises(ValueError, match="abacus"):
        binding.bind_output("y", "abacus")
    with pytest.raises(ValueError, match="`element_type` and `shape` are to be provided"):
        binding.bind_output("y", buffer_ptr=fixed.ctypes.data)
    binding.bind_cpu_input("x", np.zeros(3, np.float32))
    binding.bind_cpu_output("y", np.zeros(4, np.float32))
    with pytest.raises(rukh.InvalidInputError, match="y"):
        session.run_with_iobinding(binding)


def test_shapes_of_every_rank():
    for rank in (0, 1, 8, 9, 20):
        value = rukh.Value(np.zeros([1] * rank, np.float32))
        assert value.shape() == [1] * rank and value.numpy().shape == (1,) * rank
