"""Models with compiled parts: nodes EPContext whose content is what rukh compiled."""

import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from conftest import GPU, ROOT, Plugin
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import _pybind_state as state

Compatibility = state.OrtCompiledModelCompatibility


def contexts(model):
    """The attributes of each node EPContext."""
    nodes = [node for node in onnx.load(model).graph.node if node.op_type == "EPContext"]
    return [{a.name: helper.get_attribute_value(a) for a in node.attribute} for node in nodes]


def compile_to(plugin, model, out, embed="0", options=None, **entries):
    entries |= {"ep__context_enable": "1", "ep__context_file_path": str(out), "ep__context_embed_mode": embed}
    return plugin.session(model, options, **entries)


def parts_file(folder):
    """Two parts of rukh's around an operator of ONNX Runtime's, with weights in a file beside the model."""
    rng = np.random.default_rng(3)
    weights = {name: rng.standard_normal((64, 64)).astype(np.float32) for name in ("w1", "w2")}
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", ["n", 64]), ("y", None))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"]),
        helper.make_node("CDist", ["a", "a"], ["b"], domain="com.microsoft", metric="euclidean"),
        helper.make_node("MatMul", ["b", "a"], ["c"]),
        helper.make_node("MatMul", ["c", "w2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "parts", *ports, [numpy_helper.from_array(array, name) for name, array in weights.items()]
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    file = folder / "parts.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=opsets, ir_version=10),
        file,
        save_as_external_data=True,
        location="parts.data",
        size_threshold=0,
    )
    return file


@pytest.mark.parametrize("embed", ["0", "1"])
def test_a_compiled_model_gives_the_same_bits(plugin, digits, tmp_path, embed):
    file, images, _ = digits
    plain = plugin.session(file)
    feed = {plain.get_inputs()[0].name: images}
    expected = plain.run(None, feed)
    out = tmp_path / "context.onnx"
    # The session that compiles also runs.
    np.testing.assert_array_equal(compile_to(plugin, file, out, embed).run(None, feed)[0], expected[0])
    (node,) = contexts(out)
    assert node["source"].decode() == plugin.name
    assert (node["main_context"], node["embed_mode"]) == (1, int(embed))
    assert node["hardware_architecture"] and node["ep_sdk_version"]
    beside = list(tmp_path.glob("*.rukh"))
    if embed == "1":
        assert not beside
    else:
        assert [node["ep_cache_context"].decode()] == [path.name for path in beside]
    opened = plugin.session(out)
    assert plugin.assigned(opened) == {plugin.name: ["EPContext"]}
    np.testing.assert_array_equal(opened.run(None, feed)[0], expected[0])


@pytest.mark.parametrize("embed", ["0", "1"])
def test_several_parts_with_external_weights(plugin, tmp_path, embed):
    file = parts_file(tmp_path)
    plain = plugin.session(file, strict=False)
    feed = {"x": np.random.default_rng(4).standard_normal((5, 64)).astype(np.float32)}
    expected = plain.run(None, feed)
    folder = tmp_path / "compiled"
    folder.mkdir()
    out = folder / "context.onnx"
    compile_to(plugin, file, out, embed, strict=False)
    # What was compiled stands alone.
    for old in (file, tmp_path / "parts.data"):
        old.unlink()
    assert len(contexts(out)) == 2
    assert len(list(folder.glob("*.rukh"))) == (0 if embed == "1" else 2)
    opened = plugin.session(out, strict=False)
    assert plugin.assigned(opened)[plugin.name] == ["EPContext", "EPContext"]
    np.testing.assert_array_equal(opened.run(None, feed)[0], expected[0])


def test_a_model_that_is_made_anew_leaves_the_parts_of_the_old_one_alone(plugin, digits, tmp_path):
    file, images, _ = digits
    out, old = tmp_path / "context.onnx", tmp_path / "old.onnx"
    compile_to(plugin, file, out)
    out.rename(old)
    with pytest.raises(Exception, match="no_such_target"):
        compile_to(plugin, file, out, options={"compile_targets": "no_such_target"})
    compile_to(plugin, file, out, options={"compile_weights": "all"})
    session = plugin.session(old)
    session.run(None, {session.get_inputs()[0].name: images})
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.skipif(not hasattr(onnxruntime, "ModelCompiler"), reason="this onnxruntime has no ModelCompiler")
def test_the_model_compiler(plugin, digits, tmp_path):
    file, images, _ = digits
    plain = plugin.session(file)
    feed = {plain.get_inputs()[0].name: images}
    expected = plain.run(None, feed)[0]
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices(plugin.devices()[:1], {})
    compiler = onnxruntime.ModelCompiler(options, str(file), embed_compiled_data_into_model=True)
    np.testing.assert_array_equal(plugin.session(compiler.compile_to_bytes()).run(None, feed)[0], expected)
    out = tmp_path / "compiled.onnx"
    onnxruntime.ModelCompiler(options, str(file), embed_compiled_data_into_model=False).compile_to_file(
        str(out)
    )
    assert len(list(tmp_path.glob("*.rukh"))) == 1
    np.testing.assert_array_equal(plugin.session(out).run(None, feed)[0], expected)


@pytest.mark.skipif(
    not hasattr(state, "get_compatibility_info_from_model"), reason="this onnxruntime asks for no verdicts"
)
def test_verdicts(plugin, digits, tmp_path):
    out = tmp_path / "context.onnx"
    compile_to(plugin, digits[0], out)
    info = state.get_compatibility_info_from_model(str(out), plugin.name)

    def verdict(text):
        return state.get_model_compatibility_for_ep_devices(plugin.devices()[:1], text)

    assert verdict(info) == Compatibility.EP_SUPPORTED_OPTIMAL
    older = info.replace('"library":"', '"library":"0.')
    assert verdict(older) == Compatibility.EP_SUPPORTED_PREFER_RECOMPILATION
    elsewhere = info.replace('"revision":', '"revision":9')
    assert verdict(elsewhere) == Compatibility.EP_UNSUPPORTED
    assert verdict("of somebody else") == Compatibility.EP_NOT_APPLICABLE


@pytest.mark.skipif(not GPU, reason="needs a GPU or the emulated one")
def test_one_model_for_several_targets(digits, tmp_path):
    """What is compiled on the CPU for a GPU too is opened on both."""
    cpu, gpu = Plugin("cpu"), Plugin("gpu")
    file, images, _ = digits
    out = tmp_path / "context.onnx"
    compile_to(gpu, file, out, "1", {"compile_targets": "gfx90a,gfx1100"})
    (node,) = contexts(out)
    assert set(node["hardware_architecture"].decode().split(",")) == {"gfx90a", "gfx1100"}
    plain = gpu.session(file)
    feed = {plain.get_inputs()[0].name: images}
    np.testing.assert_array_equal(gpu.session(out).run(None, feed)[0], plain.run(None, feed)[0])
    # Nobody else takes it: its source is the provider for GPUs.
    with pytest.raises(Exception, match="EPContext"):
        cpu.session(out, strict=False)


def damaged(folder, change):
    """A compiled model of the digits whose part was changed."""
    model = folder / "context.onnx"
    (part,) = folder.glob("*.rukh")
    change(model, part)
    return model


def cut(_, part):
    part.write_bytes(part.read_bytes()[:1000])


def turn(_, part):
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)


def gone(_, part):
    part.unlink()


def foreign(_, part):
    part.write_bytes(b"something else")


def another_model(_, part):
    part.write_bytes((ROOT / "examples" / "digits" / "digits.onnx").read_bytes())


def link(_, part):
    elsewhere = part.parent.parent / "elsewhere.rukh"
    part.rename(elsewhere)
    part.symlink_to(elsewhere)


def attribute(name, value):
    def change(model, _):
        proto = onnx.load(model)
        for given in proto.graph.node[0].attribute:
            if given.name == name:
                given.CopyFrom(helper.make_attribute(name, value))
        model.write_bytes(proto.SerializeToString())

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (cut, ["EPContext", "cut short"]),
        (turn, ["EPContext", "damaged"]),
        (gone, ["EPContext", ".rukh", "No such file"]),
        (foreign, ["EPContext", ".rukh", "no compiled model"]),
        (another_model, ["EPContext", ".rukh", "no compiled model"]),
        (link, ["a link to", "not in the model's folder"]),
        (
            attribute("ep_cache_context", "../elsewhere.rukh"),
            ["../elsewhere.rukh", "not in the model's folder"],
        ),
        (attribute("embed_mode", 7), ["embed_mode is 7", "allowed is 0 or 1"]),
        (attribute("main_context", 0), ["main_context is 0"]),
        (attribute("ep_cache_context", ""), ["names no file"]),
    ],
)
def test_damage_is_an_error_that_says_what_to_do(plugin, digits, tmp_path, change, words):
    compile_to(plugin, digits[0], tmp_path / "context.onnx")
    with pytest.raises(Exception) as raised:
        plugin.session(damaged(tmp_path, change))
    text = str(raised.value)
    assert all(word in text for word in [*words, "ep.context_enable"]), text


def test_parts_of_other_providers_are_left_alone(plugin, digits, tmp_path):
    compile_to(plugin, digits[0], tmp_path / "context.onnx")
    model = damaged(tmp_path, attribute("source", "AnotherExecutionProvider"))
    with pytest.raises(Exception, match="EPContext"):
        plugin.session(model, strict=False)


CACHES = [
    lambda path: {"model_cache_dir": str(path)},
    lambda path: {"migraphx_model_cache_dir": str(path)},
    lambda path: {"cache_dir": str(path)},
    lambda path: {"compiled_model_path": str(path / "kept.rukh")},
    lambda path: {
        "migraphx_save_compiled_model": "1",
        "migraphx_save_model_path": str(path / "kept.rukh"),
    },
]


@pytest.mark.parametrize("given", CACHES)
def test_what_was_compiled_once_is_kept(plugin, digits, tmp_path, given):
    file, images, _ = digits
    plain = plugin.session(file)
    feed = {plain.get_inputs()[0].name: images}
    expected = plain.run(None, feed)[0]
    files = set()
    for _ in range(3):
        np.testing.assert_array_equal(plugin.session(file, given(tmp_path)).run(None, feed)[0], expected)
        (kept,) = tmp_path.glob("*.rukh")
        # A file that is made anew is renamed to this name, and is another one.
        files.add(kept.stat().st_ino)
    assert len(files) == 1
    load = {"migraphx_load_compiled_model": "1", "migraphx_load_model_path": str(kept)}
    if "migraphx_save_compiled_model" in given(tmp_path):
        np.testing.assert_array_equal(plugin.session(file, load).run(None, feed)[0], expected)


def test_each_part_has_a_file_of_its_own(plugin, tmp_path):
    model = parts_file(tmp_path)
    given = {"compiled_model_path": str(tmp_path / "kept.rukh")}
    files = set()
    for _ in range(3):
        plugin.session(model, given, strict=False)
        kept = sorted(tmp_path.glob("kept.*.rukh"))
        assert len(kept) == 2
        files.add(tuple(path.stat().st_ino for path in kept))
    assert len(files) == 1


def test_a_compiled_model_to_load_must_be_there(plugin, digits, tmp_path):
    load = {"migraphx_load_compiled_model": "1", "migraphx_load_model_path": str(tmp_path / "none.rukh")}
    with pytest.raises(Exception, match="none.rukh"):
        plugin.session(digits[0], load)


OPEN = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from conftest import Plugin
session = Plugin(sys.argv[2]).session(sys.argv[3], {"model_cache_dir": sys.argv[4]})
images = np.load(sys.argv[5])
np.save(sys.argv[6], session.run(None, {session.get_inputs()[0].name: images})[0])
"""


def test_many_processes_share_a_cache(plugin, digits, tmp_path):
    """All of them want the same model at once, and none has it."""
    file, images, _ = digits
    cache, given = tmp_path / "cache", tmp_path / "images.npy"
    np.save(given, images)
    here = str(__file__).rsplit("/", 1)[0]
    outputs = [tmp_path / f"{i}.npy" for i in range(6)]
    processes = [
        subprocess.Popen([sys.executable, "-c", OPEN, here, plugin.kind, file, cache, given, out])
        for out in outputs
    ]
    try:
        assert [process.wait(120) for process in processes] == [0] * len(processes)
    finally:
        for process in processes:
            process.kill()
    plain = plugin.session(file)
    expected = plain.run(None, {plain.get_inputs()[0].name: images})[0]
    for out in outputs:
        np.testing.assert_array_equal(np.load(out), expected)
    # One whole file, and nothing half.
    (kept,) = cache.iterdir()
    assert kept.suffix == ".rukh"
