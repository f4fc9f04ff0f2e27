"""Which path asks for what."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import MethodError, UnknownModelError

VERSION = "1"

# What comes behind a model's name, with its method.
_OF_MODEL = {"": "GET", "ready": "GET", "infer": "POST", "generate": "POST", "generate_stream": "POST"}
_OF_SERVER = {"": "GET", "health/live": "GET", "health/ready": "GET"}


@dataclass(frozen=True)
class Route:
    """`action`: the rest of the path; `model`: None when the server is asked, not a model."""

    action: str
    model: str | None = None


def find_route(method: str, path: str) -> Route:
    """The route of a path below the application's."""
    parts = path.strip("/").split("/")
    if parts[0] != "v2":
        raise UnknownModelError(
            f"there is nothing at {path}; there are /v2/... of the Open Inference Protocol"
        )
    if len(parts) >= 3 and parts[1] == "models":
        return _of_model(method, path, parts[2], parts[3:])
    action = "/".join(parts[1:])
    return Route(_checked(method, path, action, _OF_SERVER))


def _of_model(method: str, path: str, model: str, rest: list[str]) -> Route:
    if rest[:1] == ["versions"]:
        if rest[1:2] != [VERSION]:
            raise UnknownModelError(f'model "{model}" has no version at {path}; there is version {VERSION}')
        rest = rest[2:]
    return Route(_checked(method, path, "/".join(rest), _OF_MODEL), model)


def _checked(method: str, path: str, action: str, known: dict[str, str]) -> str:
    if action not in known:
        allowed = ", ".join(repr(name) for name in known if name)
        raise UnknownModelError(f"there is nothing at {path}; known are {allowed}")
    # What may be got may be asked for its headers too.
    if method != known[action] and not (method == "HEAD" and known[action] == "GET"):
        allowed = "GET, HEAD" if known[action] == "GET" else known[action]
        raise MethodError(f"{path} was asked for with {method}; allowed is {allowed}", allowed)
    return action
