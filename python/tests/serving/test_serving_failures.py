"""Replicas that are killed, hang, fail their health check or are to go: no request is lost, and no answer wrong."""

import signal
import threading
import time

import numpy as np
import pytest
import rukh
import serving_client as client
from ray import serve
from rukh.serve import Model, application, deployment_options
from serving_client import ask, infer, kill, wait_for
from serving_failing import FailingReplica

APP = "failures"


@pytest.fixture(scope="module", autouse=True)
def served(cluster, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    digits = Model(path=client.DIGITS, num_cpus=0.5, replicas=2)
    hanging = Model(
        path=client.square(folder),
        num_cpus=0.5,
        replicas=1,
        health_check_period=0.5,
        health_check_timeout=1,
        shutdown_timeout=1,
    )
    serve.run(
        application({"digits": digits, "hanging": hanging}, deadline=120), name=APP, route_prefix="/failures"
    )
    yield
    serve.delete(APP)


def of(name):
    return serve.get_deployment_handle(name, app_name=APP)


def test_replicas_killed_under_load_lose_nothing():
    images = np.random.default_rng(3).random((20, 1, 8, 8), np.float32)
    expected = rukh.InferenceSession(client.DIGITS).run(None, {"image": images})[0]
    end = threading.Event()
    wrong, right, resent = [], [], []

    def ask_on(first):
        while not end.is_set():
            rows = slice(first, first + 1 + len(right) % 4)
            body = {
                "inputs": [
                    {
                        "name": "image",
                        "datatype": "FP32",
                        "shape": list(images[rows].shape),
                        "data": images[rows].ravel().tolist(),
                    }
                ]
            }
            status, document, headers = ask("/failures/v2/models/digits/infer", body)
            if status != 200:
                wrong.append((status, document))
                continue
            found = np.array(document["outputs"][0]["data"]).reshape(-1, 10)
            same = found.shape == expected[rows].shape and np.allclose(found, expected[rows], 1e-4, 1e-4)
            (right if same else wrong).append(rows)
            resent.append(int(headers["Rukh-Attempts"]) - 1)

    threads = [threading.Thread(target=ask_on, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    pids = set()
    try:
        for _ in range(4):
            time.sleep(3)
            pids.add(kill(of("digits")))
        # The last ones killed are replaced while requests go on.
        wait_for(lambda: serve.status().applications[APP].deployments["digits"].status == "HEALTHY")
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:3]
    assert len(pids) == 4
    assert len(right) > 50
    assert sum(resent) > 0, "no request was in hand of a replica that was killed"


def test_a_replica_that_hangs_is_replaced_and_its_requests_are_answered():
    x = np.full((1, 2), 3, np.float32)
    assert infer("hanging", "/failures", x=x)[0] == 200
    pid = kill(of("hanging"), signal.SIGSTOP)
    status, outputs = infer("hanging", "/failures", x=x)
    assert (status, outputs["y"].tolist()) == (200, [[9, 9]])
    assert of("hanging").identify.remote().result(timeout_s=60)["pid"] != pid


def test_a_replica_whose_runs_fail_is_replaced(tmp_path):
    sign = tmp_path / "sign"
    model = Model(path=client.square(tmp_path), num_cpus=0.5, replicas=1, health_check_period=0.5)
    options = deployment_options("failing", model)
    serve.run(
        serve.deployment(FailingReplica, **options).bind("failing", model, str(sign)),
        name="failing",
        route_prefix=None,
    )
    handle = serve.get_deployment_handle("failing", app_name="failing")
    pid = handle.identify.remote().result(timeout_s=60)["pid"]
    sign.write_text(str(pid))

    def another():
        try:
            return handle.identify.remote().result(timeout_s=60)["pid"] != pid
        except Exception:  # noqa: BLE001 - the replica that fails may be asked
            return False

    wait_for(another)
    found = handle.infer.remote({"x": np.full((1, 1), 2, np.float32)}).result(timeout_s=60)
    serve.delete("failing")
    assert found["y"].tolist() == [[4]]


def test_a_model_without_replicas_is_not_ready(tmp_path):
    # Nothing has so many CPUs.
    model = Model(path=client.square(tmp_path), num_cpus=1000, replicas=1)
    serve._run(application({"far": model}, deadline=2), name="far", route_prefix="/far", _blocking=False)
    wait_for(lambda: ask("/far/v2/health/live")[0] == 200)
    status, document, _ = ask("/far/v2/health/ready")
    assert (status, document["ready"], '"far"' in document["error"]) == (503, False, True)
    assert ask("/far/v2/models/far/ready")[0] == 503
    status, error = infer("far", "/far", x=np.ones((1, 1), np.float32))
    serve.delete("far")
    assert (status, error) == (504, 'model "far" did not answer within 2 s')


def test_what_is_in_hand_is_finished_when_an_application_goes(tmp_path):
    model = Model(path=client.square(tmp_path), num_cpus=0.5, replicas=1, batch_wait=2)
    serve.run(application({"going": model}), name="going", route_prefix="/going")
    x = np.full((1, 1), 5, np.float32)
    assert infer("going", "/going", x=x)[0] == 200
    found = []
    thread = threading.Thread(target=lambda: found.append(infer("going", "/going", x=x)))
    thread.start()
    time.sleep(0.7)
    serve.delete("going")
    thread.join()
    status, outputs = found[0]
    assert (status, outputs["y"].tolist()) == (200, [[25]])


def test_replicas_come_with_requests_in_flight_and_go_again(tmp_path):
    scaling = {
        "max_replicas": 3,
        "target_ongoing_requests": 2,
        "upscale_delay_s": 0.5,
        "downscale_delay_s": 1,
        "look_back_period_s": 2,
        "metrics_interval_s": 0.5,
    }
    model = Model(path=client.square(tmp_path), num_cpus=0.2, batch_wait=0.3, autoscaling=scaling)
    serve.run(application({"many": model}), name="many", route_prefix="/many")
    end = threading.Event()
    x = np.ones((1, 1), np.float32)

    def ask_on():
        while not end.is_set():
            assert infer("many", "/many", x=x)[0] == 200

    def running():
        return serve.status().applications["many"].deployments["many"].replica_states.get("RUNNING", 0)

    threads = [threading.Thread(target=ask_on) for _ in range(10)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: running() == 3)
    finally:
        end.set()
        for thread in threads:
            thread.join()
    wait_for(lambda: running() == 1)
    serve.delete("many")
