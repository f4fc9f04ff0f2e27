"""Models as deployments of Ray Serve, and the application of them with its ingress."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ray import serve
from ray.serve import Application

from .errors import OptionError
from .ingress import Ingress
from .options import AUTOSCALING, Model, Served, TextModel, parse_model
from .replica import ModelReplica

INGRESS = "ingress"


def application(
    models: Mapping[str, Model | TextModel],
    *,
    deadline: float = 30.0,
    max_request_bytes: int = 256 << 20,
    ingress_replicas: int = 1,
    ingress_cpus: float = 0.5,
) -> Application:
    """An application for `serve.run`: the models, and an ingress that speaks the Open Inference Protocol.

    `models`: by the names that clients use. `deadline`: seconds for a reply, with all attempts; of a text, for each
    piece. `max_request_bytes`: larger requests are refused. `ingress_replicas`, `ingress_cpus`: how many processes
    take requests, and what Ray reserves for each.
    """
    if not models:
        raise OptionError("models is empty; allowed are one model and more, by name")
    if isinstance(deadline, bool) or not isinstance(deadline, (int, float)) or not 0 < deadline < math.inf:
        raise OptionError(f"deadline is {deadline!r}; allowed are seconds above 0")
    for option, value in (("max_request_bytes", max_request_bytes), ("ingress_replicas", ingress_replicas)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise OptionError(f"{option} is {value!r}; allowed are whole numbers from 1 on")
    bound = {name: deployment(name, model) for name, model in models.items()}
    ingress = serve.deployment(
        Ingress,
        name=INGRESS,
        num_replicas=ingress_replicas,
        ray_actor_options={"num_cpus": ingress_cpus},
        max_ongoing_requests=sum(4 * model.ongoing() for model in models.values()) + 100,
    )
    return ingress.bind(bound, float(deadline), max_request_bytes, repr(models))


def deployment(name: str, model: Model | TextModel) -> Application:
    """One model as a deployment, for applications with an ingress of their own.

    Its handle has `infer(inputs, outputs)`, or `stream(request)` for a text model, and `describe()`.
    """
    _check_name(name, model)
    return serve.deployment(replica_class(model), **deployment_options(name, model)).bind(name, model)


def build(arguments: Mapping[str, Any]) -> Application:
    """The application of a configuration file, for `serve run rukh.serve:build` and `serve deploy`.

    `arguments`: `models`, a mapping of names to the options of a model with its `path` and `kind`, and the options
    of `application`.
    """
    settings = dict(arguments)
    models = settings.pop("models", None)
    if not isinstance(models, Mapping):
        raise OptionError(f"models is {models!r}; allowed is a mapping of names to the options of a model")
    known = ("deadline", "max_request_bytes", "ingress_replicas", "ingress_cpus")
    if unknown := [key for key in settings if key not in known]:
        raise OptionError(f"there is no option {unknown[0]!r}; there are models, {', '.join(known)}")
    return application({name: parse_model(name, given) for name, given in models.items()}, **settings)


def deployment_options(name: str, model: Served) -> dict[str, Any]:
    """The options of Ray Serve's deployment."""
    actor = {**model.actor_options, "num_cpus": model.num_cpus}
    if model.num_gpus:
        actor["num_gpus"] = model.num_gpus
    options: dict[str, Any] = {
        "name": name,
        "ray_actor_options": actor,
        "max_ongoing_requests": model.ongoing(),
        "max_queued_requests": model.max_queued_requests,
        "health_check_period_s": model.health_check_period,
        "health_check_timeout_s": model.health_check_timeout,
        "graceful_shutdown_timeout_s": model.shutdown_timeout,
        "graceful_shutdown_wait_loop_s": min(1.0, model.shutdown_timeout),
    }
    if model.replicas is not None:
        options["num_replicas"] = model.replicas
    else:
        options["autoscaling_config"] = {
            **AUTOSCALING,
            "target_ongoing_requests": model.busy(),
            **model.autoscaling,
        }
    return options


def replica_class(model: Served) -> type:
    if isinstance(model, TextModel):
        # Here, as it needs librukh_generate.
        from .text_replica import TextReplica

        return TextReplica
    return ModelReplica


def _check_name(name: str, model: Served) -> None:
    if not isinstance(model, Served):
        raise OptionError(f'model "{name}" is a {type(model).__name__}; allowed are Model and TextModel')
    # Ray's controller counts by these names, and stops at one that is not ASCII without a word to who deploys.
    readable = isinstance(name, str) and name.isascii() and name.isprintable() and name == name.strip()
    if not readable or not name or name == INGRESS or set("/#") & set(name):
        raise OptionError(
            f'a model has the name {name!r}; allowed are texts of printable ASCII without "/" and "#" and without spaces '
            f'around them, but "{INGRESS}"'
        )
