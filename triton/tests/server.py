"""Runs tritonserver, the program of the package nvidia-pytriton, with the backend in a folder of its own.

RUKH_TRITON_BACKEND is the file of libtriton_rukh.so, RUKH_LIBRARY that of librukh.so. TRITONSERVER may name another
program.
"""

import contextlib
import importlib.util
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import tritonclient.grpc
import tritonclient.http

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program() -> pathlib.Path:
    """The file of tritonserver; pytriton is not imported, for it wants more packages."""
    if "TRITONSERVER" in os.environ:
        return pathlib.Path(os.environ["TRITONSERVER"])
    package = importlib.util.find_spec("pytriton")
    return pathlib.Path(package.submodule_search_locations[0]) / "tritonserver" / "bin" / "tritonserver"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def link_backend(folder: pathlib.Path) -> None:
    """A folder of backends with this one and librukh beside it."""
    own = folder / "rukh"
    own.mkdir(parents=True)
    (own / "libtriton_rukh.so").symlink_to(pathlib.Path(os.environ["RUKH_TRITON_BACKEND"]).resolve())
    (own / "librukh.so.0.1").symlink_to(pathlib.Path(os.environ["RUKH_LIBRARY"]).resolve())


class Server:
    """A server that runs; models are loaded when a test asks for them."""

    def __init__(
        self,
        folder: pathlib.Path,
        arguments: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
    ):
        self.repository, self.log_file = folder / "models", folder / "log"
        self.repository.mkdir(parents=True, exist_ok=True)
        if not (folder / "backends").exists():
            link_backend(folder / "backends")
        http, grpc = free_port(), free_port()
        self.http_address, self.grpc_address = f"127.0.0.1:{http}", f"127.0.0.1:{grpc}"
        with self.log_file.open("w") as log:
            self.process = subprocess.Popen(
                [
                    program(),
                    f"--model-repository={self.repository}",
                    f"--backend-directory={folder / 'backends'}",
                    "--model-control-mode=explicit",
                    f"--http-port={http}",
                    f"--grpc-port={grpc}",
                    "--allow-metrics=false",
                    "--http-thread-count=64",
                    *arguments,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | (environment or {}),
            )
        self.wait()
        self.http = tritonclient.http.InferenceServerClient(self.http_address, network_timeout=120.0)
        self.grpc = tritonclient.grpc.InferenceServerClient(self.grpc_address)

    def wait(self) -> None:
        for _ in range(600):
            if self.process.poll() is not None:
                raise RuntimeError(f"tritonserver ended with {self.process.returncode}:\n{self.log()}")
            try:
                with urllib.request.urlopen(f"http://{self.http_address}/v2/health/live", timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"tritonserver did not start:\n{self.log()}")

    def log(self) -> str:
        return self.log_file.read_text()

    def add(self, name: str, model: object, config: str = "", load: bool = True) -> None:
        """A model of the repository: a file's bytes or what has them, with lines of its config.pbtxt."""
        folder = self.repository / name
        (folder / "1").mkdir(parents=True)
        data = model if isinstance(model, bytes) else model.SerializeToString()
        (folder / "1" / "model.onnx").write_bytes(data)
        (folder / "config.pbtxt").write_text(f'backend: "rukh"\n{config}\n')
        if load:
            self.http.load_model(name)

    def unload(self, name: str) -> None:
        """Unloads a model and waits until it is gone."""
        self.settle()
        self.http.unload_model(name)
        for _ in range(6000):
            states = [m.get("state") for m in self.http.get_model_repository_index() if m["name"] == name]
            if states == ["UNAVAILABLE"]:
                return
            time.sleep(0.01)
        raise RuntimeError(f"{name} is {states} a minute after it was unloaded:\n{self.log()}")

    def settle(self) -> None:
        """Waits until all threads of the server sleep.

        The server (2.51, and what came after it until today) takes an instance out of its thread's queue for each piece
        of work, a warm-up too, and puts it back when the client has its answer already. Who ends that thread looks for
        the instance in the queue (`TritonBackendThread::StopBackendThread`, without a lock), and the server ends by
        SIGSEGV if the instance is not back yet. So a model may be unloaded when its thread waits for work again.
        """
        asleep = 0
        for _ in range(6000):
            asleep = asleep + 1 if set(self.thread_states()) <= {"S"} else 0
            if asleep == 2:
                return
            time.sleep(0.01)
        raise RuntimeError(f"the server's threads do not come to rest: {self.thread_states()}")

    def thread_states(self) -> list[str]:
        """The letters of the threads' states, as `ps` has them."""
        states = []
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                states.append((task / "stat").read_text().rpartition(")")[2].split()[0])
        return states

    def memory(self) -> int:
        """The bytes that the server's process holds in memory."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("/proc has no VmRSS of the server")

    def stop(self) -> int:
        """Ends the server, which unloads its models, and gives its exit status."""
        if self.process.poll() is None:
            self.settle()
        self.http.close()
        self.grpc.close()
        self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
