"""Models beyond what a machine holds end in an error, not the process."""

import os
import subprocess
import sys

PROGRAM = """
import resource, sys
import rukh

model = sys.stdin.buffer.read()
with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20),) * 2)
try:
    rukh.InferenceSession(model)
except rukh.RukhError as error:
    print(type(error).__name__, error)
"""


def field(number: int, data: bytes) -> bytes:
    """A field of a protobuf message that has a length."""
    length, size = b"", len(data)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def test_a_graph_beyond_memory():
    def name(i):
        return b"v%d" % i

    count = 300_000
    nodes = (field(1, field(1, name(i)) + field(2, name(i + 1)) + field(4, b"Relu")) for i in range(count))
    float_of_two = field(2, field(1, b"\x08\x01" + field(2, field(1, b"\x08\x02"))))
    ports = field(11, field(1, name(0)) + float_of_two) + field(12, field(1, name(count)) + float_of_two)
    graph = b"".join(nodes) + field(2, b"long") + ports
    model = b"\x08\x08" + field(7, graph) + field(8, b"\x10\x11")
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=model, capture_output=True, env=os.environ)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.startswith(b"OutOfMemoryError ") and b"has 300000 nodes" in done.stdout, done.stdout
