"""Times rukh's GPU kernels on NVIDIA beside a device's copy and PyTorch's kernels, in turns.

    scripts/bench_gpu.py [--rounds N] [--megabytes N] [--verbose] [PART_OF_A_NAME…]

Memory-bound kernels work on tensors of 256 MB in device memory, the same for both; their bytes are those of inputs
and outputs, each once, and what a copy on the device achieves is measured in the same rounds. Before each of them
another tensor is read, so that nobody pays for what the one before left in the cache to be written.
Products and attention are chains of eight, each fed by the one before, as are PyTorch's. Times are those of the
kernels themselves, from CUDA's profiler; of each the median over the rounds. Every output is compared with
PyTorch's. Prints Markdown.
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import rukh
import torch
from onnx import TensorProto, helper, numpy_helper
from torch.profiler import ProfilerActivity, profile

ONNX = {
    torch.float32: TensorProto.FLOAT,
    torch.float16: TensorProto.FLOAT16,
    torch.bfloat16: TensorProto.BFLOAT16,
    torch.uint8: TensorProto.UINT8,
}
CHAIN = 8
F = torch.nn.functional


@dataclass
class Case:
    """An operator on large tensors: what rukh runs, what PyTorch runs, and what a result may be off by."""

    name: str
    operator: str
    shapes: list[tuple[int, ...]]
    reference: Callable[..., torch.Tensor]
    dtype: torch.dtype = torch.float32
    attributes: dict = field(default_factory=dict)
    constants: list[np.ndarray] = field(default_factory=list)
    out: torch.dtype | None = None
    tolerance: float = 2e-3


def cases(elements: int) -> list[Case]:
    columns = 4096
    rows = elements // columns
    wide, half = (rows, columns), (2 * rows, columns)
    image = (elements // (64 * 128 * 128), 64, 128, 128)
    weight = np.linspace(0.5, 1.5, columns, dtype=np.float32)
    bias = np.linspace(-1, 1, columns, dtype=np.float32)
    scale = [torch.from_numpy(x).cuda() for x in (weight, bias)]
    f16 = torch.float16
    index = np.random.default_rng(1).permutation(rows)
    index_there = torch.from_numpy(index).cuda()
    heads = (16, elements // (16 * 16 * 64) * 2, 16, 64)
    i64 = np.int64
    return [
        Case("Add f32", "Add", [wide, wide], torch.add),
        Case("Mul f16", "Mul", [half, half], torch.mul, f16),
        Case("Add, a row f32", "Add", [wide], lambda x: x + scale[1], constants=[bias]),
        Case("Gelu f32", "Gelu", [wide], F.gelu),
        Case("Gelu f16", "Gelu", [half], F.gelu, f16),
        Case("Sigmoid f32", "Sigmoid", [wide], torch.sigmoid),
        Case("Cast f32 to f16", "Cast", [wide], lambda x: x.half(), attributes={"to": ONNX[f16]}, out=f16),
        Case("Softmax f32", "Softmax", [wide], lambda x: x.softmax(-1), attributes={"axis": -1}),
        Case("Softmax f16", "Softmax", [half], lambda x: x.softmax(-1), f16, {"axis": -1}),
        Case(
            "LayerNormalization f32",
            "LayerNormalization",
            [wide],
            lambda x: F.layer_norm(x, (columns,), *scale),
            constants=[weight, bias],
        ),
        Case(
            "RMSNormalization f16",
            "RMSNormalization",
            [half],
            lambda x: F.rms_norm(x, (columns,), scale[0].half(), 1e-5),
            f16,
            constants=[weight.astype(np.float16)],
        ),
        Case("Transpose f32", "Transpose", [wide], lambda x: x.t().contiguous(), attributes={"perm": [1, 0]}),
        Case("Transpose f16", "Transpose", [half], lambda x: x.t().contiguous(), f16, {"perm": [1, 0]}),
        Case(
            "Transpose of heads f16",
            "Transpose",
            [heads],
            lambda x: x.transpose(1, 2).contiguous(),
            f16,
            {"perm": [0, 2, 1, 3]},
        ),
        Case("Concat f32", "Concat", [wide, wide], lambda x, y: torch.cat((x, y), 1), attributes={"axis": 1}),
        Case(
            "Slice f32",
            "Slice",
            [wide],
            lambda x: x[:, 64:-64].contiguous(),
            constants=[np.array([64]), np.array([-64]), np.array([1])],
        ),
        Case(
            "Gather of rows f32",
            "Gather",
            [wide],
            lambda x: x.index_select(0, index_there),
            attributes={"axis": 0},
            constants=[index],
        ),
        Case(
            "ReduceSum of rows f32",
            "ReduceSum",
            [wide],
            lambda x: x.sum(1, keepdim=True),
            constants=[np.array([1], i64)],
        ),
        Case(
            "ReduceSum of columns f32",
            "ReduceSum",
            [wide],
            lambda x: x.sum(0, keepdim=True),
            constants=[np.array([0], i64)],
        ),
        Case(
            "MaxPool 2x2 f32",
            "MaxPool",
            [image],
            lambda x: F.max_pool2d(x, 2),
            attributes={"kernel_shape": [2, 2], "strides": [2, 2]},
        ),
        Case(
            "GlobalAveragePool f32",
            "GlobalAveragePool",
            [image],
            lambda x: x.mean((2, 3), keepdim=True),
        ),
        Case(
            "QuantizeLinear f32",
            "QuantizeLinear",
            [wide],
            lambda x: (x / 0.03125).round().add(128).clamp(0, 255).to(torch.uint8),
            constants=[np.float32(0.03125), np.uint8(128)],
            out=torch.uint8,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--verbose", action="store_true", help="name the kernels")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    chosen = lambda name: not arguments.names or any(part in name for part in arguments.names)  # noqa: E731
    torch.manual_seed(7)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, rukh {rukh.__version__}\n")
    print("| kernel | MB | µs | GB/s | of a copy | PyTorch's µs |\n|---|---|---|---|---|---|")
    failed = []
    for case in cases(arguments.megabytes * (1 << 20) // 4):
        if chosen(case.name):
            failed += guarded(case.name, lambda case=case: memory_bound(case, arguments))
    print("\n| product or attention | µs | TFLOP/s | PyTorch's TFLOP/s | ratio |\n|---|---|---|---|---|")
    for name, run in CHAINS.items():
        if chosen(name):
            failed += guarded(name, lambda run=run, name=name: run(name, arguments))
    print("".join(f"\nFAILED {line}" for line in failed))
    return 1 if failed else 0


def guarded(name: str, run: Callable[[], None]) -> list[str]:
    try:
        run()
    except (AssertionError, RuntimeError) as error:
        return [f"{name}: {error}"]
    return []


def session(nodes: list, inputs: list, outputs: list, constants: dict[str, np.ndarray]) -> rukh.InferenceSession:
    tensors = [numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()]
    graph = helper.make_graph(nodes, "bench", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    options = rukh.SessionOptions()
    options.add_session_config_entry("fallback", "error")
    return rukh.InferenceSession(model.SerializeToString(), options, providers=["hip", "cpu"])


def kernels(run: Callable[[], None]) -> list[tuple[str, float]]:
    """Name and microseconds of what the device did, in order."""
    with profile(activities=[ProfilerActivity.CUDA]) as record:
        run()
        torch.cuda.synchronize()
    there = [e for e in record.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    there.sort(key=lambda e: e.time_range.start)
    return [(e.name, e.time_range.elapsed_us()) for e in there]


def memory_bound(case: Case, arguments: argparse.Namespace) -> None:
    inputs = [torch.randn(s, device="cuda").to(case.dtype) for s in case.shapes]
    expected = case.reference(*inputs)
    constants = {f"c{i}": x for i, x in enumerate(case.constants)}
    names = [f"x{i}" for i in range(len(inputs))]
    given = [helper.make_tensor_value_info(x, ONNX[case.dtype], list(s)) for x, s in zip(names, case.shapes, strict=True)]
    out = helper.make_tensor_value_info("y", ONNX[case.out or case.dtype], list(expected.shape))
    node = helper.make_node(case.operator, [*names, *constants], ["y"], **case.attributes)
    ours = session([node], given, [out], constants)
    got = torch.empty_like(expected)
    run = bound(ours, dict(zip(names, inputs, strict=True)), "y", got)
    run()
    wanted = expected.float()
    off = 1.0 if case.out == torch.uint8 else case.tolerance * max(1.0, wanted.abs().max().item())
    assert (got.float() - wanted).abs().max().item() <= off, "the results differ"

    size = sum(x.nbytes for x in [*inputs, expected])
    first = torch.empty(size // 2, dtype=torch.uint8, device="cuda")
    source = torch.zeros_like(first)
    times: dict[str, list[float]] = {"copy": [], "rukh": [], "torch": []}
    calls = {"copy": lambda: first.copy_(source), "rukh": run, "torch": lambda: case.reference(*inputs)}
    for _ in range(arguments.rounds):
        for who, call in calls.items():
            source.sum()
            torch.cuda.synchronize()
            seen = [k for k in kernels(call) if not k[0].startswith(("Memcpy HtoD", "Memcpy DtoH", "Memset"))]
            assert seen, f"no kernel of {who}"
            times[who].append(sum(t for _, t in seen))
            if arguments.verbose and who == "rukh":
                print(f"{case.name}: {[name for name, _ in seen]}", file=sys.stderr)
    copy, rukh_, torch_ = (statistics.median(x) for x in times.values())
    rate = size / rukh_ / 1e3
    print(
        f"| {case.name} | {size / 1e6:.0f} | {rukh_:.1f} | {rate:.0f} | {copy / rukh_:.2f} | {torch_:.1f} |", flush=True
    )


def bound(
    ours: rukh.InferenceSession, inputs: dict[str, torch.Tensor], output: str, got: torch.Tensor
) -> Callable[[], None]:
    """Runs a session whose inputs and output are where PyTorch has them."""
    torch.cuda.synchronize()
    binding = ours.io_binding()
    for name, x in inputs.items():
        binding.bind_input(name, "hip", 0, element(x), tuple(x.shape), x.data_ptr())
    binding.bind_output(output, "hip", 0, element(got), tuple(got.shape), got.data_ptr())
    return lambda: ours.run_with_iobinding(binding)


def element(x: torch.Tensor) -> np.dtype | str:
    name = str(x.dtype).removeprefix("torch.")
    return name if x.dtype == torch.bfloat16 else np.dtype(name)


def chain(
    name: str,
    arguments: argparse.Namespace,
    node: Callable[[str, str], object],
    arrays: dict[str, torch.Tensor],
    step: Callable[[torch.Tensor], torch.Tensor],
    exact: Callable[[torch.Tensor], torch.Tensor],
    flops: float,
) -> None:
    """`x` goes through CHAIN nodes; `exact` is a step in higher precision."""
    dtype = arrays["x"].dtype
    nodes = [node(f"y{i}" if i else "x", f"y{i + 1}") for i in range(CHAIN)]
    info = [helper.make_tensor_value_info(k, ONNX[dtype], list(a.shape)) for k, a in arrays.items()]
    last = helper.make_tensor_value_info(f"y{CHAIN}", ONNX[dtype], list(arrays["x"].shape))
    ours = session(nodes, info, [last], {})
    got = torch.empty_like(arrays["x"])
    run_ours = bound(ours, arrays, f"y{CHAIN}", got)

    def theirs() -> torch.Tensor:
        x = arrays["x"]
        for _ in range(CHAIN):
            x = step(x)
        return x

    wanted = arrays["x"].float()
    for _ in range(CHAIN):
        wanted = exact(wanted)
    run_ours()
    error = ((got.float() - wanted).norm() / wanted.norm()).item()
    reference = ((theirs().float() - wanted).norm() / wanted.norm()).item()
    assert error <= 2 * reference + 1e-4, f"the results are off by {error:.1e}, PyTorch's by {reference:.1e}"
    times: dict[str, list[float]] = {"rukh": [], "torch": []}
    for _ in range(arguments.rounds):
        for who, run in (("rukh", run_ours), ("torch", theirs)):
            seen = [k for k in kernels(run) if not k[0].startswith(("Memcpy", "Memset"))]
            times[who].append(sum(t for _, t in seen) / CHAIN)
    if arguments.verbose:
        print(f"{name}: torch's {sorted({n for n, _ in seen})}", file=sys.stderr)
    rukh_, torch_ = (statistics.median(x) for x in times.values())
    rates = [flops / t / 1e6 for t in (rukh_, torch_)]
    print(f"| {name} | {rukh_:.1f} | {rates[0]:.0f} | {rates[1]:.0f} | {torch_ / rukh_:.2f} |", flush=True)


def product(dtype: torch.dtype, size: int, transposed: bool) -> Callable[[str, argparse.Namespace], None]:
    def run(name: str, arguments: argparse.Namespace) -> None:
        x = torch.randn(size, size, device="cuda").to(dtype)
        b = (torch.randn(size, size, device="cuda") / size**0.5).to(dtype)
        turn = {"transB": 1} if transposed else {}
        side = b.t() if transposed else b
        node = lambda a, y: helper.make_node("Gemm", [a, "b"], [y], **turn)  # noqa: E731
        exact = lambda x: x @ side.float()  # noqa: E731
        chain(name, arguments, node, {"x": x, "b": b}, lambda x: x @ side, exact, 2 * size**3)

    return run


def bytes_product(size: int) -> Callable[[str, argparse.Namespace], None]:
    """QLinearMatMul, beside PyTorch's product alone, which leaves its sums in 32 bits."""

    def run(name: str, arguments: argparse.Namespace) -> None:
        x, b = (torch.randint(-128, 128, (size, size), dtype=torch.int8, device="cuda") for _ in range(2))
        constants = {"one": np.float32(1), "scale": np.float32(128 * size**0.5), "zero": np.int8(0)}
        given = ["one", "zero", "b", "one", "zero", "scale", "zero"]
        nodes = [
            helper.make_node("QLinearMatMul", [f"y{i}" if i else "x", *given], [f"y{i + 1}"]) for i in range(CHAIN)
        ]
        info = lambda value: helper.make_tensor_value_info(value, TensorProto.INT8, [size, size])  # noqa: E731
        ours = session(nodes, [info("x"), info("b")], [info(f"y{CHAIN}"), info("y1")], constants)
        feed = {"x": x.cpu().numpy(), "b": b.cpu().numpy()}
        wanted = ((x.double() @ b.double()) / float(constants["scale"])).round().clamp(-128, 127)
        got = torch.from_numpy(ours.run(None, feed)[1]).cuda().double()
        assert (got - wanted).abs().max().item() <= 1, "the results differ"
        # As cuBLAS multiplies bytes fastest.
        columns = b.t().contiguous().t()
        times: dict[str, list[float]] = {"rukh": [], "torch": []}
        for _ in range(arguments.rounds):
            for who, call in (("rukh", lambda: ours.run(None, feed)), ("torch", lambda: torch._int_mm(x, columns))):
                seen = [k for k in kernels(call) if not k[0].startswith(("Memcpy", "Memset"))]
                times[who].append(sum(t for _, t in seen) / (CHAIN if who == "rukh" else 1))
        rukh_, torch_ = (statistics.median(x) for x in times.values())
        rates = [2 * size**3 / t / 1e6 for t in (rukh_, torch_)]
        print(f"| {name} | {rukh_:.1f} | {rates[0]:.0f} | {rates[1]:.0f} | {torch_ / rukh_:.2f} |", flush=True)

    return run


def attention(shape: tuple[int, int, int, int], causal: bool) -> Callable[[str, argparse.Namespace], None]:
    def run(name: str, arguments: argparse.Namespace) -> None:
        arrays = {k: torch.randn(shape, device="cuda").half() for k in "xkv"}
        # Larger values keep the outputs' size, so that each step has scores worth weighing.
        arrays["v"] *= 8
        k, v = arrays["k"], arrays["v"]
        node = lambda q, y: helper.make_node("Attention", [q, "k", "v"], [y], is_causal=int(causal))  # noqa: E731
        attend = F.scaled_dot_product_attention
        step = lambda q: attend(q, k, v, is_causal=causal)  # noqa: E731
        exact = lambda q: attend(q.float(), k.float(), v.float(), is_causal=causal)  # noqa: E731
        batch, heads, rows, size = shape
        chain(name, arguments, node, arrays, step, exact, 4 * batch * heads * rows**2 * size / (1 + causal))

    return run


CHAINS = {
    "Gemm f16, 4096³": product(torch.float16, 4096, False),
    "Gemm f16, 4096³, B transposed": product(torch.float16, 4096, True),
    "Gemm f16, 8192³": product(torch.float16, 8192, False),
    "Gemm bf16, 4096³": product(torch.bfloat16, 4096, False),
    "Gemm bf16, 4096³, B transposed": product(torch.bfloat16, 4096, True),
    "Gemm bf16, 8192³": product(torch.bfloat16, 8192, False),
    "Gemm f32, 4096³": product(torch.float32, 4096, False),
    "Gemm f32, 4096³, B transposed": product(torch.float32, 4096, True),
    "Gemm f32, 8192³": product(torch.float32, 8192, False),
    "QLinearMatMul int8, 4096³": bytes_product(4096),
    "QLinearMatMul int8, 1024³": bytes_product(1024),
    "Attention f16, 8 × 16 heads × 2048 × 128": attention((8, 16, 2048, 128), False),
    "Attention f16, causal, 8 × 16 heads × 2048 × 128": attention((8, 16, 2048, 128), True),
    "Attention f16, 8 × 16 heads × 2048 × 64": attention((8, 16, 2048, 64), False),
}


if __name__ == "__main__":
    sys.exit(main())
