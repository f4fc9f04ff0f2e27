"""A Ray cluster of this machine's for the tests of rukh.serve (`make test-serve`)."""

import importlib.util
import pathlib
import sys

import pytest

# For models.py.
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))

# Ray is large and has an environment of its own: `make test-python` has none, and these tests are `make test-serve`'s.
collect_ignore_glob = [] if importlib.util.find_spec("ray") else ["test_*.py"]


@pytest.fixture(scope="session")
def cluster():
    """Ray with more CPUs than there may be: what matters here is processes, not speed."""
    import ray
    import serving_client
    from ray import serve

    ray.init(num_cpus=32, num_gpus=2, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": serving_client.HOST, "port": serving_client.PORT})
    yield
    serve.shutdown()
    ray.shutdown()
