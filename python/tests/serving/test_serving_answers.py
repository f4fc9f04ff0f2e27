"""Models served by Ray: right answers, batches, wrong requests, deadlines."""

import json

import numpy as np
import pytest
import rukh
import serving_client as client
from ray import serve
from rukh.serve import Model, OptionError, application, build, deployment_options
from serving_client import ask, at_once, infer

APP = "answers"


@pytest.fixture(scope="module", autouse=True)
def served(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    models = {
        "digits": Model(path=client.DIGITS, num_cpus=0.5),
        "square": Model(
            path=client.square(folder), num_cpus=0.5, replicas=1, batch_wait=0.3, max_batch_size=16
        ),
        "lookup": Model(path=client.lookup(folder), num_cpus=0.5, replicas=1, batch_wait=0.3),
        "fixed": Model(path=client.fixed(folder), num_cpus=0.5),
        "mixing": Model(path=client.mixing(folder), num_cpus=0.5, batch_wait=0.2),
        "echo": Model(path=client.echo(folder), num_cpus=0.5, replicas=1, batch_wait=0.3),
        "50%41 off": Model(path=client.fixed(folder), num_cpus=0.2, replicas=1),
        "slow": Model(
            path=client.square(folder),
            num_cpus=0.5,
            replicas=1,
            batch_wait=1.5,
            max_ongoing_requests=1,
            max_queued_requests=1,
        ),
    }
    serve.run(application(models, max_request_bytes=1 << 20), name=APP, route_prefix="/answers")
    yield
    serve.delete(APP)


def of(name):
    return serve.get_deployment_handle(name, app_name=APP)


def identify(name):
    return of(name).identify.remote().result(timeout_s=60)


def test_health_and_metadata():
    assert ask("/answers/v2/health/live")[:2] == (200, {"live": True})
    assert ask("/answers/v2/health/ready")[:2] == (200, {"ready": True})
    assert ask("/answers/v2/models/digits/ready")[:2] == (200, {"ready": True})
    status, server, _ = ask("/answers/v2")
    assert (status, server["name"], server["version"]) == (200, "rukh", rukh.RUKH_VERSION)
    assert ask("/answers/v2/models/digits")[:2] == (
        200,
        {
            "name": "digits",
            "versions": ["1"],
            "platform": "onnx_rukh",
            "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 1, 8, 8]}],
            "outputs": [{"name": "scores", "datatype": "FP32", "shape": [-1, 10]}],
        },
    )


def test_digits_are_the_sessions():
    images = np.random.default_rng(1).random((40, 1, 8, 8), np.float32)
    expected = rukh.InferenceSession(client.DIGITS).run(None, {"image": images})[0]
    # 40 rows are more than a batch may have.
    for rows in (1, 5, 40, 0):
        status, outputs = infer("digits", "/answers", image=images[:rows])
        assert status == 200
        np.testing.assert_allclose(outputs["scores"], expected[:rows], rtol=1e-4, atol=1e-5)


def test_bytes_both_ways():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    entry = {"name": "x", "datatype": "FP32", "shape": [2, 3], "parameters": {"binary_data_size": x.nbytes}}
    output = {"name": "y", "parameters": {"binary_data": True}}
    head = json.dumps({"id": "a7", "inputs": [entry], "outputs": [output]}).encode()
    path = "/answers/v2/models/square/versions/1/infer"
    status, content, headers = ask(
        path, head + x.tobytes(), {"Inference-Header-Content-Length": str(len(head))}
    )
    assert status == 200
    length = int(headers["Inference-Header-Content-Length"])
    assert json.loads(content[:length])["id"] == "a7"
    assert np.frombuffer(content[length:], np.float32).tolist() == [0, 1, 4, 9, 16, 25]


def test_texts():
    texts = np.array(["", "möwe", "日本"], object)
    status, outputs = infer("echo", "/answers", x=texts)
    assert (status, outputs["y"].tolist()) == (200, texts.tolist())


def test_requests_share_runs_and_other_shapes_have_their_own():
    before = identify("square")
    assert before["batches"]
    inputs = [np.full((1 + i % 2, 2 + i % 3), i + 1, np.float32) for i in range(12)]
    for x, (status, outputs) in zip(
        inputs, at_once([lambda x=x: infer("square", "/answers", x=x) for x in inputs])
    ):
        assert status == 200
        np.testing.assert_array_equal(outputs["y"], x * x)
    after = identify("square")
    requests, runs = after["requests"] - before["requests"], after["runs"] - before["runs"]
    # Three widths, and two batches of 16 rows at most.
    assert requests == 12
    assert 3 <= runs <= 9, runs


def test_a_model_without_a_first_dimension_to_choose_runs_each_by_itself():
    assert not identify("fixed")["batches"]
    inputs = [np.full((2, 3), i, np.float32) for i in range(8)]
    found = at_once([lambda x=x: infer("fixed", "/answers", x=x) for x in inputs])
    assert [outputs["y"].tolist() for _, outputs in found] == [(-x).tolist() for x in inputs]


def test_a_model_whose_rows_mix_is_not_batched():
    assert not identify("mixing")["batches"]
    inputs = [np.array([[i, 1], [0, i]], np.float32) for i in range(6)]
    for x, (status, outputs) in zip(
        inputs, at_once([lambda x=x: infer("mixing", "/answers", x=x) for x in inputs])
    ):
        assert status == 200
        np.testing.assert_allclose(outputs["y"], np.exp(x) / np.exp(x).sum(0), rtol=1e-5)


def test_one_wrong_request_does_not_fail_the_others():
    rows = [[0], [3, 1], [99], [2], [-50], [1]]
    calls = [lambda row=row: infer("lookup", "/answers", i=np.array(row)) for row in rows]
    for row, (status, found) in zip(rows, at_once(calls)):
        if row in ([99], [-50]):
            assert (status, str(row[0]) in found) == (400, True), found
        else:
            assert (status, found["y"].tolist()) == (200, [[2 * i, 2 * i + 1] for i in row])


def test_a_text_that_is_none_does_not_fail_the_others():
    def say(text):
        entry = {"name": "x", "datatype": "BYTES", "shape": [1], "data": [text]}
        return lambda: ask("/answers/v2/models/echo/infer", {"inputs": [entry]})

    before = identify("echo")["requests"]
    found = at_once([say(text) for text in ("good", "\ud800", "\U0001f600")])
    assert [status for status, _, _ in found] == [200, 400, 200]
    assert [found[i][1]["outputs"][0]["data"] for i in (0, 2)] == [["good"], ["\U0001f600"]]
    assert "half a character, \\ud800" in found[1][1]["error"]
    assert identify("echo")["requests"] == before + 2


def test_what_comes_by_a_handle_fails_alone():
    x = np.full((1, 1), 3, np.float32)
    handle = of("square")
    good, wrong, fine = [handle.infer.remote({"x": value}) for value in (x, [[3.0]], x)]
    assert [reply.result(timeout_s=60)["y"].tolist() for reply in (good, fine)] == [[[9]], [[9]]]
    with pytest.raises(
        rukh.serve.RequestError, match='"x" of model "square" is a list; allowed are NumPy arrays'
    ):
        wrong.result(timeout_s=60)


def test_a_deadline_of_one_request_is_not_that_of_its_batch():
    x = np.ones((1, 1), np.float32)
    assert infer("square", "/answers", x=x)[0] == 200
    timeouts = ({}, {"timeout": 100_000}, {}, {"timeout": 100_000}, {})
    found = at_once([lambda t=t: infer("square", "/answers", t, x=x) for t in timeouts])
    assert [status for status, _ in found] == [200, 504, 200, 504, 200]


def test_names_may_have_what_paths_escape():
    status, document, _ = ask("/answers/v2/models/50%2541%20off")
    assert (status, document["name"]) == (200, "50%41 off")


@pytest.mark.parametrize(
    ("path", "body", "allowed"),
    [("/v2/models/square/infer", None, "POST"), ("/v2/health/live", {}, "GET, HEAD")],
)
def test_another_method_is_told_which_are_allowed(path, body, allowed):
    status, _, headers = ask("/answers" + path, body)
    assert (status, headers["Allow"]) == (405, allowed)


@pytest.mark.parametrize(
    ("name", "inputs", "status", "message"),
    [
        ("square", {"z": np.zeros((1, 2), np.float32)}, 400, 'has no input "z"; it has "x"'),
        ("square", {}, 400, 'also needs the input "x"'),
        ("square", {"x": np.zeros((1, 2))}, 400, "elements of type FP64; the model takes FP32"),
        ("square", {"x": np.zeros(2, np.float32)}, 400, "of rank 1; the model takes [n, w]"),
        ("fixed", {"x": np.zeros((2, 4), np.float32)}, 400, "the model takes [2, 3]"),
        ("circle", {}, 404, 'there is no model "circle"; there are "digits"'),
        ("square", {"x": np.zeros((300, 1000), np.float32)}, 413, "allowed are 1048576 (max_request_bytes)"),
    ],
)
def test_wrong_requests_are_told_what_is_wrong(name, inputs, status, message):
    before = identify("square")["requests"]
    found, error = infer(name, "/answers", **inputs)
    assert (found, message in error) == (status, True), error
    assert identify("square")["requests"] == before


def test_wrong_paths_and_documents():
    for path, body, status, message in (
        ("/v1/models", None, 404, "there are /v2/"),
        ("/v2/models/square/infer", None, 405, "allowed is POST"),
        ("/v2/models/square/versions/3/infer", {}, 404, "there is version 1"),
        ("/v2/models/square/infer", b"{", 400, "is no JSON"),
        ("/v2/models/square/generate", {"text_input": "a"}, 400, "has tensors: use infer"),
    ):
        found, document, _ = ask("/answers" + path, body)
        assert (found, message in document["error"]) == (status, True), document
    found, document, _ = ask("/answers/v2/models/square/infer", b"{}", {"Content-Encoding": "gzip"})
    assert (found, "Content-Encoding 'gzip'" in document["error"]) == (400, True)


def test_a_deadline_that_passes_is_504():
    x = np.ones((1, 1), np.float32)
    assert infer("square", "/answers", x=x)[0] == 200
    status, error = infer("square", "/answers", {"timeout": 50_000}, x=x)
    assert (status, error) == (504, 'model "square" did not answer within 0.05 s')


def test_a_line_that_is_full_is_503():
    x = np.ones((1, 1), np.float32)
    found = at_once([lambda: infer("slow", "/answers", x=x)] * 6)
    statuses = {status for status, _ in found}
    assert statuses == {200, 503}, found
    assert all("too many requests in line" in error for status, error in found if status == 503)


def test_handles_give_arrays_and_raise():
    x = np.full((2, 2), 3, np.float32)
    found = of("square").infer.remote({"x": x}).result(timeout_s=60)
    assert found["y"].tolist() == [[9, 9], [9, 9]]
    with pytest.raises(rukh.serve.RequestError, match='has no output "q"'):
        of("square").infer.remote({"x": x}, ["q"]).result(timeout_s=60)
    with pytest.raises(rukh.InvalidDataError, match="99"):
        of("lookup").infer.remote({"i": np.array([99])}).result(timeout_s=60)


def test_options_become_rays():
    options = deployment_options("m", Model(path="a", num_gpus=0.25, autoscaling={"max_replicas": 9}))
    assert options["ray_actor_options"] == {"num_cpus": 1, "num_gpus": 0.25}
    scaling = options["autoscaling_config"]
    assert (scaling["min_replicas"], scaling["max_replicas"], scaling["target_ongoing_requests"]) == (
        1,
        9,
        16,
    )
    assert "autoscaling_config" not in deployment_options("m", Model(path="a", replicas=3))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "models is None"),
        ({"models": {}}, "models is empty"),
        ({"models": {"a/b": {"path": "x"}}}, "a model has the name 'a/b'"),
        ({"models": {"ingress": {"path": "x"}}}, "a model has the name 'ingress'"),
        (
            {"models": {"café": {"path": "x"}}},
            "a model has the name 'café'; allowed are texts of printable ASCII",
        ),
        ({"models": {"a\tb": {"path": "x"}}}, "a model has the name"),
        ({"models": {" a": {"path": "x"}}}, "without spaces around them"),
        (
            {"models": {"a": {"path": "x"}}, "dead": 3},
            "there is no option 'dead'; there are models, deadline",
        ),
        ({"models": {"a": {"path": "x"}}, "deadline": 0}, "deadline is 0; allowed are seconds above 0"),
    ],
)
def test_applications_that_are_wrong_are_refused(arguments, message):
    with pytest.raises(OptionError, match=message):
        build(arguments)


def test_a_model_that_cannot_be_opened_is_named(tmp_path):
    model = Model(path=str(tmp_path / "none.onnx"), num_cpus=0.5, replicas=1)
    with pytest.raises(RuntimeError):
        serve.run(application({"missing": model}), name="missing", route_prefix="/missing")
    told = serve.status().applications["missing"].deployments["missing"].message
    serve.delete("missing")
    assert 'model "missing" cannot be opened' in told
    assert "none.onnx" in told
