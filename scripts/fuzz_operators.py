"""Writes fuzz/operators.txt, from which the fuzz target run_node makes models: scripts/fuzz_operators.py

A line for each version of each operator of the standard, columns separated by tabs: the domain ("." for
ai.onnx), the name, the first and the last operator set with this version, the element types of each type
variable (numbers of TensorProto.DataType, joined by commas; variables by bars), for each input the number
of its variable ("?": optional, "*": variadic), the smallest and largest number of outputs, and the
attributes with their kinds (i, f, s, t: an integer, a float, a string, a tensor; capitals: lists; "!":
required). Operators with graphs for attributes and those that need sequences, maps or optionals are left out.
"""

import pathlib
import re

import onnx
from onnx import TensorProto

FILE = pathlib.Path(__file__).resolve().parents[1] / "fuzz" / "operators.txt"
KINDS = {"INT": "i", "FLOAT": "f", "STRING": "s", "TENSOR": "t", "INTS": "I", "FLOATS": "F", "STRINGS": "S"}
# A variadic last output may be asked for this often.
MOST_OUTPUTS = 4


def main() -> None:
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain in ("", "ai.onnx.ml")]
    schemas.sort(key=lambda s: (s.domain, s.name, s.since_version))
    newest = {domain: max(s.since_version for s in schemas if s.domain == domain) for domain in ("", "ai.onnx.ml")}
    lines = []
    for schema, following in zip(schemas, [*schemas[1:], None]):
        last = newest[schema.domain]
        if following and (following.domain, following.name) == (schema.domain, schema.name):
            last = following.since_version - 1
        if not schema.deprecated and (line := describe(schema, last)):
            lines.append(line)
    FILE.write_text("".join(f"{line}\n" for line in lines))


def describe(schema: onnx.defs.OpSchema, last: int) -> str | None:
    variables: dict[str, list[int]] = {}
    inputs = []
    for parameter in schema.inputs:
        numbers = [n for text in parameter.types if (n := element(text))]
        option = parameter.option.name
        if not numbers:
            if option == "Optional":
                break
            return None
        # A parameter of mixed types binds nothing: each is a variable of its own.
        name = parameter.type_str if parameter.is_homogeneous else parameter.name
        variables[name] = numbers
        suffix = {"Optional": "?", "Variadic": "*"}.get(option, "")
        inputs.append(f"{list(variables).index(name)}{suffix}")
    attributes = []
    for name, attribute in sorted(schema.attributes.items()):
        if (kind := KINDS.get(attribute.type.name)) is None:
            if attribute.required or attribute.type.name in ("GRAPH", "GRAPHS"):
                return None
            continue
        attributes.append(f"{name}:{kind}{'!' if attribute.required else ''}")
    most = min(schema.max_output, MOST_OUTPUTS)
    columns = [
        schema.domain or ".",
        schema.name,
        str(schema.since_version),
        str(last),
        "|".join(",".join(map(str, numbers)) for numbers in variables.values()),
        " ".join(inputs),
        f"{max(schema.min_output, 1)} {most}",
        " ".join(attributes),
    ]
    return "\t".join(columns)


def element(text: str) -> int | None:
    """The number of a type such as "tensor(float)"; None for what is no tensor."""
    match = re.fullmatch(r"tensor\((\w+)\)", text)
    if match is None:
        return None
    names = {name.lower(): number for name, number in TensorProto.DataType.items()}
    return names[match[1]]


if __name__ == "__main__":
    main()
