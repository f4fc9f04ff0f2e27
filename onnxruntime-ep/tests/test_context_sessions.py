"""Models with compiled parts that come from memory, were renamed, have bodies of control flow or parts of other providers."""

import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from conftest import LIBRARY, NAMES
from onnx import TensorProto, helper, numpy_helper
from test_context import compile_to, contexts, parts_file


def files(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def with_metadata(model, given, wanted):
    """Changes what ONNX Runtime keeps in a model for its provider to judge."""
    proto = onnx.load(model)
    (entry,) = [entry for entry in proto.metadata_props if '"rukh"' in entry.value]
    assert given in entry.value
    entry.value = entry.value.replace(given, wanted)
    model.write_bytes(proto.SerializeToString())


def by_the_c_api(plugin, model, fail_on_suboptimal):
    program = pathlib.Path(__file__).with_name("c_session.py")
    arguments = [*NAMES[plugin.kind], LIBRARY, str(model), fail_on_suboptimal]
    done = subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def test_sessions_of_the_c_api_follow_the_verdict(plugin, digits, tmp_path):
    out = tmp_path / "context.onnx"
    compile_to(plugin, digits[0], out)
    assert by_the_c_api(plugin, out, "1") == "opened\n"
    with_metadata(out, '"library":"', '"library":"0.')
    assert by_the_c_api(plugin, out, "0") == "opened\n"
    assert "suboptimal" in by_the_c_api(plugin, out, "1")
    with_metadata(out, '"revision":', '"revision":9')
    assert "not supported by execution provider" in by_the_c_api(plugin, out, "0")


def test_models_from_memory(plugin, digits, tmp_path):
    """Parts lie beside the file that ep.context_file_path names, where a model is read and where it is written."""
    file, images, _ = digits
    content = file.read_bytes()
    plain = plugin.session(content)
    feed = {plain.get_inputs()[0].name: images}
    expected = plain.run(None, feed)[0]
    out = tmp_path / "context.onnx"
    compile_to(plugin, content, out)
    assert len(list(tmp_path.glob("*.rukh"))) == 1
    compiled = out.read_bytes()
    opened = plugin.session(compiled, ep__context_file_path=str(out))
    np.testing.assert_array_equal(opened.run(None, feed)[0], expected)
    with pytest.raises(Exception, match=r"came from memory; set ep\.context_file_path"):
        plugin.session(compiled)
    # What is in the model needs no file.
    inside = tmp_path / "inside.onnx"
    compile_to(plugin, content, inside, "1")
    np.testing.assert_array_equal(plugin.session(inside.read_bytes()).run(None, feed)[0], expected)


def test_paths_that_begin_nowhere_and_have_any_letters(plugin, digits, tmp_path, monkeypatch):
    file, images, _ = digits
    monkeypatch.chdir(tmp_path)
    for out in ("context.onnx", "für später/großes modell.onnx"):
        compile_to(plugin, file, out)
        session = plugin.session(out)
        session.run(None, {session.get_inputs()[0].name: images})
    (tmp_path / "für später").rename(tmp_path / "moved")
    session = plugin.session("moved/großes modell.onnx")
    session.run(None, {session.get_inputs()[0].name: images})


def test_without_a_path_the_model_lies_beside_the_other(plugin, digits, tmp_path):
    model = tmp_path / "digits.onnx"
    model.write_bytes(digits[0].read_bytes())
    plugin.session(model, ep__context_enable="1")
    (part,) = tmp_path.glob("*.rukh")
    assert files(tmp_path) == sorted(["digits.onnx", "digits_ctx.onnx", part.name])
    assert part.name.startswith("digits_ctx_")
    plugin.session(tmp_path / "digits_ctx.onnx")


def test_values_may_be_renamed(plugin, tmp_path):
    """A part's inputs and outputs count by their order: whoever changes the model may call them anything."""
    ports = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in names]
        for names in (("a", "b"), ("d", "s"))
    ]
    nodes = [helper.make_node("Sub", ["a", "b"], ["d"]), helper.make_node("Add", ["d", "a"], ["s"])]
    model = helper.make_model(
        helper.make_graph(nodes, "two", *ports), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    out = tmp_path / "context.onnx"
    compile_to(plugin, model, out)
    proto = onnx.load(out)
    # Each name becomes that of another value.
    names = {"a": "b", "b": "a", "d": "s", "s": "d"}
    for value in (*proto.graph.input, *proto.graph.output):
        value.name = names[value.name]
    (node,) = proto.graph.node
    node.input[:] = [names[name] for name in node.input]
    node.output[:] = [names[name] for name in node.output]
    out.write_bytes(proto.SerializeToString())
    a, b = np.float32([5, 7]), np.float32([1, 2])
    found = plugin.session(out).run(["s", "d"], {"b": a, "a": b})
    np.testing.assert_array_equal(found, [a - b, a - b + a])


def test_a_node_with_other_ends_than_what_was_compiled(plugin, digits, tmp_path):
    out = tmp_path / "context.onnx"
    compile_to(plugin, digits[0], out)
    proto = onnx.load(out)
    proto.graph.node[0].input.append(proto.graph.node[0].input[0])
    out.write_bytes(proto.SerializeToString())
    with pytest.raises(Exception, match="it has 2 inputs and 1 outputs, and what was compiled takes 1"):
        plugin.session(out)


@pytest.mark.parametrize("embed", ["0", "1"])
def test_bodies_of_control_flow_are_in_a_part(plugin, tmp_path, embed):
    """A loop that adds a weight from around it, and a condition on how long it ran."""
    weight = numpy_helper.from_array(np.float32([1, 2, 4]), "w")
    sums = helper.make_tensor_value_info("sum", TensorProto.FLOAT, [3])
    body = helper.make_graph(
        [helper.make_node("Add", ["before", "w"], ["after"]), helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, [3]),
        ],
    )
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(operator, ["sum"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3])],
        )
        for name, operator in (("then", "Neg"), ("else", "Exp"))
    }
    nodes = [
        helper.make_node("Loop", ["count", "", "x"], ["sum"], body=body),
        helper.make_node("Greater", ["count", "three"], ["many"]),
        helper.make_node("If", ["many"], ["y"], **branches),
    ]
    graph = helper.make_graph(
        nodes,
        "bodies",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
            helper.make_tensor_value_info("count", TensorProto.INT64, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])],
        [weight, numpy_helper.from_array(np.int64(3), "three")],
        value_info=[sums],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    plain = plugin.session(model, strict=False)
    out = tmp_path / "context.onnx"
    compile_to(plugin, model, out, embed, strict=False)
    assert contexts(out)
    opened = plugin.session(out, strict=False)
    for count in (0, 2, 5):
        feed = {"x": np.float32([0.5, -1, 2]), "count": np.array(count, np.int64)}
        np.testing.assert_array_equal(opened.run(None, feed)[0], plain.run(None, feed)[0])


def test_weights_that_other_providers_have_stay_in_the_model(plugin, tmp_path):
    """An initializer of an operator of ONNX Runtime's own goes where its options say; those of parts do not."""
    proto = onnx.load(parts_file(tmp_path))
    proto.graph.node[1].input[1] = "others"
    others = np.random.default_rng(5).standard_normal((300, 64)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(others, "others"))
    # As many columns as the next product has rows.
    proto.graph.node[2].CopyFrom(helper.make_node("MatMul", ["b", "others"], ["c"]))
    file = tmp_path / "more.onnx"
    onnx.save(proto, file)
    plain = plugin.session(file, strict=False)
    feed = {"x": np.random.default_rng(6).standard_normal((5, 64)).astype(np.float32)}
    folder = tmp_path / "compiled"
    folder.mkdir()
    out = folder / "context.onnx"
    entries = {"ep__context_model_external_initializers_file_name": "others.data"}
    compile_to(plugin, file, out, strict=False, **entries)
    kept = onnx.load(out, load_external_data=False).graph.initializer
    assert [tensor.name for tensor in kept] == ["others"]
    assert (folder / "others.data").stat().st_size == pytest.approx(others.nbytes, rel=0.1)
    opened = plugin.session(out, strict=False)
    np.testing.assert_array_equal(opened.run(None, feed)[0], plain.run(None, feed)[0])


def test_values_of_other_types_are_not_at_the_border_of_a_part(plugin, tmp_path):
    """A text is read by ONNX Runtime's own operator; within a part any type may be."""
    nodes = [
        helper.make_node("Cast", ["t"], ["x"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["x"], ["small"], to=TensorProto.FLOAT8E4M3FN),
        helper.make_node("Cast", ["small"], ["rounded"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["x", "rounded"], ["y"]),
    ]
    ports = [
        [helper.make_tensor_value_info(name, kind, [3])]
        for name, kind in (("t", TensorProto.STRING), ("y", TensorProto.FLOAT))
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "text", *ports), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    out = tmp_path / "context.onnx"
    compile_to(plugin, model, out, strict=False)
    assert sorted(node.op_type for node in onnx.load(out).graph.node) == ["Cast", "EPContext"]
    feed = {"t": np.array(["0.3", "-7.7", "100"], dtype=object)}
    plain, opened = (plugin.session(it, strict=False).run(None, feed) for it in (model, out))
    np.testing.assert_array_equal(opened[0], plain[0])


@pytest.mark.parametrize("key", ["ep.enable_weightless", "ep.enable_weightless_ep_context_nodes"])
def test_parts_without_weights_are_refused(plugin, digits, tmp_path, key):
    out = tmp_path / "context.onnx"
    with pytest.raises(Exception, match=f"{key}.*have their weights"):
        compile_to(plugin, digits[0], out, **{key.replace(".", "__", 1): "1"})
    assert not files(tmp_path)
    compile_to(plugin, digits[0], out, **{key.replace(".", "__", 1): "0"})


def test_a_compiled_model_is_not_compiled_again(plugin, digits, tmp_path):
    out, again = tmp_path / "context.onnx", tmp_path / "again.onnx"
    compile_to(plugin, digits[0], out)
    with pytest.raises(Exception, match="compiled before"):
        compile_to(plugin, out, again)


def test_the_cache_has_a_limit(plugin, digits, tmp_path):
    """What was used longest ago goes, as soon as there is more than the limit allows."""
    file, _, _ = digits
    given = {"model_cache_dir": str(tmp_path)}
    plugin.session(file, given)
    (first,) = tmp_path.glob("*.rukh")
    plugin.session(file, given | {"optimization": "basic", "model_cache_limit": str(first.stat().st_size)})
    assert not first.exists()
    assert len(list(tmp_path.glob("*.rukh"))) <= 1
    with pytest.raises(Exception, match="model_cache_limit"):
        plugin.session(file, given | {"model_cache_limit": "much"})
