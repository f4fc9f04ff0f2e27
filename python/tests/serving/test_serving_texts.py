"""Language models served by Ray: texts come piece by piece, and go on when a replica dies."""

import http.client
import json
import re

import pytest
import serving_client as client
from ray import serve
from rukh.generation import Generator
from rukh.serve import TextModel, application
from serving_client import ask, at_once, kill

APP = "texts"
PATH = "/texts/v2/models/talk"
ENDLESS = {"text_input": "Count from 3", "parameters": {"ignore_stop": True, "max_tokens": 180}}


@pytest.fixture(scope="module", autouse=True)
def served(cluster):
    talk = TextModel(path=client.TALK, num_cpus=0.5, replicas=2)
    serve.run(application({"talk": talk}, deadline=60), name=APP, route_prefix="/texts")
    yield
    serve.delete(APP)


def expected(prompt, tokens, **options):
    generator = Generator(client.TALK, **options)
    generator.append(prompt)
    text = ""
    for _ in range(tokens):
        if generator.stop():
            break
        generator.next()
        text += generator.text()
    return text


def events(body, after=None):
    """The documents of a stream; `after` is called once three of them were read."""
    connection = http.client.HTTPConnection(client.HOST, client.PORT, timeout=120)
    connection.request("POST", f"{PATH}/generate_stream", json.dumps(body).encode())
    reply = connection.getresponse()
    assert reply.status == 200
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    found = []
    while line := reply.readline():
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
            if after is not None and len(found) == 3:
                after()
    connection.close()
    return found


def test_a_text_is_the_generators():
    status, document, _ = ask(f"{PATH}/generate", {"text_input": "Count from 3", "id": "q"})
    assert (status, document["text_output"]) == (200, expected("Count from 3", 250))
    assert (document["id"], document["model_name"], document["parameters"]) == (
        "q",
        "talk",
        {"finish_reason": "token"},
    )


def test_a_conversation_streams():
    found = events({"messages": [{"role": "user", "content": "Draw four stars."}]})
    assert [event["text_output"] for event in found] == ["★"] * 4 + [""]
    assert [event.get("parameters") for event in found] == [None] * 4 + [{"finish_reason": "token"}]


def test_texts_at_once_are_apart():
    prompts = [f"What is {i} plus {i + 3}?" for i in range(12)]
    calls = [
        lambda prompt=prompt: ask(f"{PATH}/generate", {"text_input": prompt, "parameters": {"max_tokens": 9}})
        for prompt in prompts
    ]
    for prompt, (status, document, _) in zip(prompts, at_once(calls)):
        assert (status, document["text_output"]) == (200, expected(prompt, 9))


def test_options_choose_tokens():
    options = {"sample": True, "temperature": 1.5, "top_k": 0, "seed": 5, "ignore_stop": True}
    body = {"text_input": "Count from 3", "parameters": {**options, "max_tokens": 20}}
    status, document, _ = ask(f"{PATH}/generate", body)
    assert (status, document["text_output"]) == (200, expected("Count from 3", 20, **options))
    assert document["parameters"] == {"finish_reason": "length"}


def test_a_text_goes_on_when_its_replica_dies():
    text = expected("Count from 3", 180, ignore_stop=True)
    handle = serve.get_deployment_handle("talk", app_name=APP)
    pids = set()

    def kill_all():
        # Whichever of the two has it.
        while len(pids) < 2:
            pids.add(kill(handle))

    found = events(ENDLESS, kill_all)
    assert not [event for event in found if "error" in event], found[-1]
    assert "".join(event["text_output"] for event in found) == text
    assert found[-1]["parameters"] == {"finish_reason": "length"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"text_input": ""}, "is empty"),
        ({"text_input": "a" * 3000}, "tokens, more than the model's context"),
        ({"text_input": "a", "parameters": {"heat": 2}}, 'no parameter "heat"'),
        ({"text_input": "a", "parameters": {"temperature": -1}}, "temperature"),
        ({"messages": [{"role": "user"}]}, "message 0 is .* it needs role and content"),
    ],
)
def test_wrong_requests_are_told_before_the_stream_begins(body, message):
    for action in ("generate", "generate_stream"):
        status, document, _ = ask(f"{PATH}/{action}", body)
        assert status == 400, document
        assert re.search(message, document["error"])


def test_tensors_are_refused():
    status, document, _ = ask(f"{PATH}/infer", {"inputs": []})
    assert (status, "generates text: use generate" in document["error"]) == (400, True)
    status, document, _ = ask(PATH)
    assert (status, document["outputs"][0]["name"]) == (200, "text_output")
