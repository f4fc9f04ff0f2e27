"""The Open Inference Protocol of rukh.serve: requests read, wrong ones refused by name, replies written."""

import json
import struct
import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from rukh.serve.errors import MethodError, RequestError, UnknownModelError
from rukh.serve.protocol import InferRequest, WantedOutput, read_request, read_text_request, write_reply
from rukh.serve.routes import Route, find_route

ARRAYS = [
    np.array([[True, False]]),
    np.array([1, 255], np.uint8),
    np.array([-128, 127], np.int8),
    np.array([2**64 - 1, 0], np.uint64),
    np.array([[-(2**63)], [2**63 - 1]], np.int64),
    np.array([1.5, -2], np.float16),
    np.array([[0.1, -3e38]], np.float32),
    np.array([0.1, 1e300], np.float64),
    np.array([1.5, -2.25], ml_dtypes.bfloat16),
    np.array(["", "möwe", "a\nb"], object),
    np.zeros((0, 3), np.float32),
    np.array(5, np.int32),
]


def reply_and_back(array, binary):
    """An array out by a reply and in by a request that has the reply's entries."""
    wanted = InferRequest({}, [WantedOutput("x", binary)])
    body, headers = write_reply("m", wanted, {"x": array})
    length = headers.get("Inference-Header-Content-Length")
    assert (length is not None) == binary
    head = json.loads(body[: int(length)] if length else body)
    text = json.dumps({"inputs": head["outputs"]}).encode()
    rest = body[int(length) :] if length else b""
    return read_request(text + rest, str(len(text)) if binary else None).inputs["x"]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{list(array.shape)}")
def test_every_type_goes_out_and_in(array, binary):
    found = reply_and_back(array, binary)
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()


def request(**entry):
    entry = {"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 2], **entry}
    return json.dumps(
        {"inputs": [{key: value for key, value in entry.items() if value is not None}]}
    ).encode()


def test_nested_data_are_as_good_as_flat_ones():
    for data in ([1, 2, 3, 4], [[1, 2], [3, 4]]):
        found = read_request(request(shape=[2, 2], data=data)).inputs["x"]
        assert found.tolist() == [[1, 2], [3, 4]]
    found = read_request(request(shape=[2, 1], datatype="BYTES", data=[["a"], ["b"]])).inputs["x"]
    assert found.tolist() == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"data": [1, 2, 3]}, r'input "x" has 3 elements; its shape \[2\] needs 2'),
        ({"data": "12"}, "data of type str; allowed is a list"),
        ({"data": [1, "2"]}, "has an element '2'; allowed for FP32 are numbers"),
        ({"data": [[1], [2, 3]]}, "nested evenly or flat"),
        ({"data": [True, 2.5]}, "has an element True; allowed for FP32 are numbers"),
        ({"data": [10**400, 1]}, "a whole number that is too large for FP32"),
        ({"data": None}, "either data or the parameter binary_data_size"),
        ({"datatype": "INT64", "data": [1.5, 2]}, "has an element 1.5; allowed for INT64 are whole numbers"),
        ({"datatype": "UINT8", "data": [1, 256]}, "has 256; allowed for UINT8 are 0 to 255"),
        ({"datatype": "INT8", "data": [-129, 1]}, "has -129"),
        ({"datatype": "UINT64", "data": [2**64, 1]}, f"has {2**64}; allowed for UINT64 are 0 to {2**64 - 1}"),
        ({"datatype": "INT64", "data": [[[1], 2]]}, "nested evenly or flat"),
        ({"datatype": "BOOL", "data": [0, 1]}, "has an element 0; allowed for BOOL are true and false"),
        ({"datatype": "BYTES", "data": ["a", 1]}, "has an element 1; allowed for BYTES are texts"),
        ({"datatype": "FLOAT"}, "datatype 'FLOAT'; allowed are BOOL, UINT8"),
        ({"datatype": ["FP32"]}, "has the datatype"),
        ({"shape": [-1, 2]}, r"shape \[-1, 2\]; allowed is a list of whole numbers"),
        ({"shape": [True, 2]}, "has the shape"),
        ({"shape": [2**40, 2**40]}, "has 2 elements"),
        ({"shape": [0, 2**70], "data": []}, "which no array can have"),
        ({"shape": "2"}, "has the shape '2'"),
        ({"name": None}, "an input has the name None"),
        ({"parameters": []}, "parameters of input"),
        ({"data": None, "parameters": {"binary_data_size": 4}}, "the bytes left"),
    ],
)
def test_a_wrong_input_is_refused_by_name(entry, message):
    with pytest.raises(RequestError, match=message):
        read_request(request(**entry))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "is no JSON"),
        (b"[]", "is a JSON list; allowed is an object"),
        (b"\xff", "is no JSON"),
        (b"[" * 100_000, "nested too deeply|is no JSON"),
        (b"{}", '"inputs" must be a list'),
        (b'{"inputs": [1]}', '"inputs" must be a list of objects'),
        (b'{"inputs": [], "outputs": {}}', '"outputs" must be a list'),
        (b'{"inputs": [], "outputs": [{"name": "y"}, {"name": "y"}]}', 'output "y" is wanted twice'),
        (
            b'{"inputs": [], "outputs": [{"name": "y", "parameters": {"classification": 3}}]}',
            "classification",
        ),
        (
            b'{"inputs": [], "outputs": [{"name": "y", "parameters": {"binary_data": 1}}]}',
            "binary_data of output",
        ),
        (b'{"inputs": [], "id": 3}', '"id" is 3'),
        (b'{"inputs": [], "parameters": {"timeout": 0}}', "timeout is 0; allowed are whole microseconds"),
    ],
)
def test_a_wrong_document_is_refused(body, message):
    with pytest.raises(RequestError, match=message):
        read_request(body)


def test_half_a_character_is_refused_wherever_it_is():
    for wrong in ({"name": "\ud800"}, {"datatype": "BYTES", "data": ["a", "b\udfff"]}):
        with pytest.raises(RequestError, match=r"half a character, \\ud[8f](00|ff)"):
            read_request(request(**wrong))
    with pytest.raises(RequestError, match="half a character"):
        read_text_request(b'{"text_input": "\\uD83D"}')
    with pytest.raises(RequestError, match="is no JSON"):
        read_text_request(b'{"text_input": "\xed\xa0\x80"}')
    # Two halves are a whole one.
    assert read_text_request(b'{"text_input": "\\ud83d\\ude00"}').text == "\U0001f600"


def test_a_list_takes_no_more_memory_than_its_elements():
    body = request(shape=[1000], data=["a" * 100_000] + [1] * 999)
    tracemalloc.start()
    with pytest.raises(RequestError, match="has an element 'aaa.*; allowed for FP32 are numbers"):
        read_request(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(body)


def test_an_input_given_twice_is_refused():
    entry = json.loads(request())["inputs"][0]
    with pytest.raises(RequestError, match='input "x" is given twice'):
        read_request(json.dumps({"inputs": [entry, entry]}).encode())


def binary_request(datatype, shape, data, size=None, length=None):
    entry = {"name": "x", "datatype": datatype, "shape": shape}
    entry["parameters"] = {"binary_data_size": len(data) if size is None else size}
    head = json.dumps({"inputs": [entry]}).encode()
    return read_request(head + data, str(len(head)) if length is None else length)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("FP32", [2], b"1234567"), "has 7 bytes, no multiple of the 4"),
        (("FP32", [3], b"12345678"), "has 2 elements"),
        (("BOOL", [1], b"\2"), "a byte above 1"),
        (("BYTES", [1], b"\5\0\0"), "ends within the length of a text"),
        (("BYTES", [1], struct.pack("<I", 9) + b"abc"), "has a text of 9 bytes at byte 4; there are 3 more"),
        (("BYTES", [1], struct.pack("<I", 1) + b"\xff"), "no UTF-8"),
        (("FP32", [1], b"12345678", 4), "4 bytes follow the last binary input"),
        (("FP32", [1], b"1234", -4), "binary_data_size -4"),
        (("FP32", [1], b"1234", 5), "allowed are 0 to 4, the bytes left"),
        (("FP32", [1], b"1234", None, "-1"), "Inference-Header-Content-Length is '-1'"),
        (("FP32", [1], b"1234", None, "9999"), "allowed are 0 to"),
    ],
)
def test_wrong_bytes_are_refused(arguments, message):
    with pytest.raises(RequestError, match=message):
        binary_request(*arguments)


def test_outputs_are_bytes_where_they_are_wanted_so():
    text = {"inputs": [], "parameters": {"binary_data_output": True, "timeout": 1500}, "id": "7"}
    found = read_request(json.dumps(text).encode())
    assert (found.output_names(), found.is_binary("y"), found.timeout, found.id) == (None, True, 0.0015, "7")
    text["outputs"] = [{"name": "y", "parameters": {"binary_data": False}}, {"name": "z"}]
    found = read_request(json.dumps(text).encode())
    assert (found.output_names(), found.is_binary("y"), found.is_binary("z")) == (["y", "z"], False, True)


def test_what_the_protocol_lacks_is_refused():
    with pytest.raises(RequestError, match='output "y" of model "m" is no tensor'):
        write_reply("m", InferRequest({}), {"y": [np.zeros(1)]})
    with pytest.raises(RequestError, match="which the protocol does not have"):
        write_reply("m", InferRequest({}), {"y": np.zeros(1, np.complex64)})


def test_requests_for_text():
    body = {
        "text_input": "Count",
        "parameters": {"max_tokens": 3, "temperature": 1, "sample": True, "seed": 4},
    }
    found = read_text_request(json.dumps(body).encode())
    assert (found.text, found.max_tokens) == ("Count", 3)
    assert found.options == {"temperature": 1, "sample": True, "seed": 4}
    for wrong, message in (
        ({}, 'either "text_input" or "messages"'),
        ({"text_input": "a", "messages": [{}]}, "either"),
        ({"text_input": 3}, '"text_input" is a int'),
        ({"text_input": "a\0b"}, "NUL"),
        ({"messages": []}, '"messages" must be a list'),
        ({"text_input": "a", "parameters": {"heat": 1}}, 'no parameter "heat"; there are max_tokens'),
        ({"text_input": "a", "parameters": {"top_k": True}}, "top_k is True; allowed are whole numbers"),
        ({"text_input": "a", "parameters": {"sample": 1}}, "sample is 1; allowed are true and false"),
        (
            {"text_input": "a", "parameters": {"max_tokens": 0}},
            "max_tokens is 0; allowed are whole numbers from 1 on",
        ),
    ):
        with pytest.raises(RequestError, match=message):
            read_text_request(json.dumps(wrong).encode())


def test_paths():
    assert find_route("GET", "/v2/health/live") == Route("health/live")
    assert find_route("GET", "/v2") == Route("")
    assert find_route("GET", "/v2/models/a") == Route("", "a")
    assert find_route("POST", "/v2/models/a/versions/1/infer") == Route("infer", "a")
    for method, path, error in (
        ("GET", "/", UnknownModelError),
        ("GET", "/v1/models/a", UnknownModelError),
        ("GET", "/v2/models", UnknownModelError),
        ("POST", "/v2/models/a/versions/2/infer", UnknownModelError),
        ("POST", "/v2/models/a/explain", UnknownModelError),
        ("GET", "/v2/models/a/infer", MethodError),
        ("POST", "/v2/health/live", MethodError),
    ):
        with pytest.raises(error, match=path):
            find_route(method, path)
