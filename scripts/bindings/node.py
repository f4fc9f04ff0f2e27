"""Writes bindings/node/lib/functions.js and constants.js with their types: the raw layer of the package for Node."""

from description import Description, Enum, Function, Parameter, prefix

FOLDER = "bindings/node/lib"
_WRITTEN = "// Written by scripts/bindings/write.py from abi/rukh-api.json; not to be changed by hand.\n"

# What koffi calls the numbers, and the types that they have in TypeScript.
_KOFFI = {
    "float": "float",
    "int32": "int32_t",
    "uint32": "uint32_t",
    "int64": "int64_t",
    "uint64": "uint64_t",
    "size": "size_t",
    "enum": "int32_t",
}
_ARRAYS = {"int64": "BigInt64Array", "int32": "Int32Array", "enum": "Int32Array", "size": "BigUint64Array"}


def files(api: Description) -> dict[str, str]:
    """The text of each file, by its path in the repository."""
    return {
        f"{FOLDER}/functions.js": _functions(api),
        f"{FOLDER}/functions.d.ts": _function_types(api),
        f"{FOLDER}/constants.js": _constants(api, ""),
        f"{FOLDER}/constants.d.ts": _constants(api, "declare "),
    }


def _functions(api: Description) -> str:
    lines = [
        _WRITTEN,
        "// The version of the interface that is described.",
        f"export const ABI_VERSION = {api.abi_version};\n",
        "// The types of callbacks as koffi declares them: the result, the parameters.",
        "export const CALLBACKS = {",
        *(f"  {f.name}: {_signature(api, f)}," for f in api.callbacks),
        "};\n",
        "// The functions as koffi declares them, without `rukh_`: the result, the parameters.",
        "export const FUNCTIONS = {",
        *(f"  {f.name}: {_signature(api, f)}," for f in api.functions),
        "};\n",
        "// Functions that return a status and give the reason of a failure through their last parameter.",
        "export const FAILING = new Set([",
        *(f'  "{f.name}",' for f in api.functions if f.fails),
        "]);\n",
        "// The version of functions that the first library of this series did not have.",
        "export const SINCE = {",
        *(f'  {name}: "{since}",' for name, since in api.newer().items()),
        "};",
    ]
    return "\n".join(lines) + "\n"


def _signature(api: Description, function: Function) -> str:
    result = "void"
    if function.returns is not None:
        kind = api.kind(function.returns)
        result = {"text": "str", "address": "void *"}.get(kind) or _KOFFI[kind]
    parameters = ", ".join(f'"{_koffi(api, parameter)}"' for parameter in function.parameters)
    return f'["{result}", [{parameters}]]'


def _koffi(api: Description, parameter: Parameter) -> str:
    if parameter.kind in _KOFFI:
        return _KOFFI[parameter.kind]
    if parameter.kind == "callback":
        return f"{parameter.base} *"
    if parameter.kind == "text":
        return "str"
    given = "_Out_ " if parameter.direction == "out" else ""
    if parameter.pointers == 2:
        return given + ("str *" if parameter.base == "char" else "void **")
    number = _pointed(api, parameter)
    # Buffers and typed arrays are passed as they are.
    return "void *" if number is None else f"{given}{_KOFFI[number]} *"


def _pointed(api: Description, parameter: Parameter) -> str | None:
    """The kind of number that a `*` points to; None for a handle and for bytes."""
    if parameter.pointers != 1 or parameter.base in ("void", "char") or parameter.base.startswith("struct "):
        return None
    if parameter.base in {f"rukh_{kind}" for kind, _ in api.handles}:
        return None
    return api.kind(parameter.base)


def _function_types(api: Description) -> str:
    lines = [
        _WRITTEN,
        "/** An address: of a handle, of memory, of a callback that `koffi.register` made. */",
        "export type Address = bigint | null;",
        "/** An integer of 64 bits; the library gives a `bigint` where a `number` cannot tell it. */",
        "export type Integer = number | bigint;",
        "/** Memory that the library reads or writes during the call, or an address. */",
        "export type Memory = ArrayBufferView | Address;",
        "/** What a call writes into: the first element is replaced. */",
        "export type Out<T> = [T];\n",
        "/**",
        " * The C API's functions without `rukh_`. Those that return a status leave out its last parameter, `error`, and throw",
        " * a `RukhError`; by `async` they run on a thread of Node's pool.",
        " */",
        "export interface Functions {",
    ]
    for function in api.functions:
        lines += _comment(function.doc, function.since, "  ")
        shown = function.parameters[:-1] if function.fails else function.parameters
        parameters = ", ".join(f"{_name(p.name)}: {_type(api, p)}" for p in shown)
        if function.fails:
            lines.append(f"  {function.name}: {{")
            lines.append(f"    ({parameters}): void;")
            lines.append(f"    async({parameters}): Promise<void>;")
            lines.append("  };")
        else:
            lines.append(f"  {function.name}({parameters}): {_result(api, function)};")
    lines += [
        "}\n",
        "export const ABI_VERSION: number;",
        "export const CALLBACKS: Record<string, [string, string[]]>;",
        "export const FUNCTIONS: Record<keyof Functions, [string, string[]]>;",
        "export const FAILING: Set<string>;",
        "export const SINCE: Record<string, string>;",
    ]
    return "\n".join(lines) + "\n"


def _name(name: str) -> str:
    return name + "_" if name in ("function", "in", "default") else name


def _result(api: Description, function: Function) -> str:
    if function.returns is None:
        return "void"
    kind = api.kind(function.returns)
    return {"text": "string", "address": "Address", "int64": "Integer", "uint64": "Integer"}.get(kind, "number")


def _type(api: Description, p: Parameter) -> str:
    if p.kind in ("int64", "uint64", "size"):
        return "Integer"
    if p.kind in _KOFFI:
        return "number"
    if p.kind == "text":
        return "string"
    if p.kind == "callback":
        return "Address"
    if p.pointers == 2:
        return _indirect_type(p)
    number = _pointed(api, p)
    if number is None:
        return "Memory" if p.base in ("void", "char") else "Address"
    array = _ARRAYS.get(number, "ArrayBufferView")
    scalar = "Integer" if number in ("int64", "uint64", "size") else "number"
    if p.length is None and p.direction == "out":
        return f"Out<{scalar}>" + (" | null" if p.nullable else "")
    return f"{scalar}[] | {array}" + (" | null" if p.nullable else "")


def _indirect_type(p: Parameter) -> str:
    item = ("string | null" if p.direction == "out" else "string") if p.base == "char" else "Address"
    listed = p.direction == "in" or p.length is not None or p.name == "outputs"
    shown = (f"({item})[]" if "|" in item else f"{item}[]") if listed else f"Out<{item}>"
    return shown + (" | null" if p.nullable else "")


def _comment(doc: str, since: str, indent: str) -> list[str]:
    lines = doc.split("\n\nSince: ")[0].split("\n") + ["", f"@since {since}"]
    return [f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */"]


def _constants(api: Description, declare: str) -> str:
    parts = [_WRITTEN]
    for enum in api.enums:
        parts.append(f"/** {_one_line(enum.doc)} */")
        parts.append(f"export {declare}const {_enum_name(enum)}" + (": {" if declare else " = Object.freeze({"))
        begin = f"{prefix(enum)}_"
        for value in enum.values:
            name = value.name.removeprefix(begin)
            if declare:
                if value.doc:
                    parts.append(f"  /** {_one_line(value.doc)} */")
                parts.append(f"  readonly {name}: {value.value};")
            else:
                parts.append(f"  {name}: {value.value},")
        parts.append("};\n" if declare else "});\n")
    return "\n".join(parts)


def _one_line(doc: str) -> str:
    return " ".join(doc.split())


def _enum_name(enum: Enum) -> str:
    return "".join(word.capitalize() for word in enum.name.split("_"))
