"""What Prometheus finds of a served model."""

import re
import urllib.request

import numpy as np
import ray
import serving_client as client
from ray import serve
from rukh.serve import Model, application
from serving_client import infer, wait_for


def test_metrics_are_where_ray_exports_them(cluster, tmp_path):
    model = Model(path=client.square(tmp_path), num_cpus=0.5, replicas=1)
    serve.run(application({"measured": model}), name="measured", route_prefix="/measured")
    for rows in (1, 3):
        assert infer("measured", "/measured", x=np.ones((rows, 1), np.float32))[0] == 200
    assert infer("measured", "/measured", x=np.ones(1, np.float32))[0] == 400
    port = ray.nodes()[0]["MetricsExportPort"]

    def value(name, **labels):
        """The sum of a metric's samples with these labels."""
        with urllib.request.urlopen(f"http://{client.HOST}:{port}/metrics", timeout=20) as reply:
            text = reply.read().decode()
        found = 0.0
        for line in text.splitlines():
            if re.match(rf"ray_{name}(_total)?\{{", line) and all(
                f'{k}="{v}"' in line for k, v in labels.items()
            ):
                found += float(line.rpartition(" ")[2])
        return found

    # The sample and the rows that show whether they are apart are no requests, and yet runs.
    wait_for(lambda: value("rukh_batch_requests_count", model="measured") == 2)
    wait_for(lambda: value("rukh_replies", model="measured", status="200") == 2)
    assert value("rukh_replies", model="measured", status="400") == 1
    assert value("rukh_runs", model="measured", outcome="ok") >= 2
    assert value("rukh_batch_rows_sum", model="measured") >= 4
    assert value("rukh_run_seconds_count", model="measured") >= 2
    serve.delete("measured")
