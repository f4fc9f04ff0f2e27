"""What is counted, for Ray's metrics: Prometheus finds each under ray_NAME."""

from __future__ import annotations

from ray.serve import metrics

# Of runs and requests, in seconds; of batches, in rows.
_SECONDS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0]
_ROWS = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]


class ReplicaMeasures:
    """Of one replica of a model."""

    def __init__(self, model: str) -> None:
        self.runs = 0  # since the replica began
        self.requests = 0
        self._runs = metrics.Counter("rukh_runs", "runs of the model", tag_keys=("model", "outcome"))
        self._rows = metrics.Histogram("rukh_batch_rows", "rows of a run", _ROWS, tag_keys=("model",))
        self._requests = metrics.Histogram(
            "rukh_batch_requests", "requests of a run", _ROWS, tag_keys=("model",)
        )
        self._seconds = metrics.Histogram(
            "rukh_run_seconds", "seconds of a run", _SECONDS, tag_keys=("model",)
        )
        self._tokens = metrics.Counter("rukh_tokens", "tokens generated", tag_keys=("model",))
        for measure in (self._runs, self._rows, self._requests, self._seconds, self._tokens):
            measure.set_default_tags({"model": model})

    def ran(self, rows: int, seconds: float, outcome: str) -> None:
        """A run of so many rows came to an end; the outcome is "ok" or the error's class."""
        self._runs.inc(tags={"outcome": outcome})
        self._rows.observe(max(rows, 0) or 0.5)
        self._seconds.observe(seconds)

    def joined(self, requests: int) -> None:
        """A run was for so many requests."""
        self.runs += 1
        self.requests += requests
        self._requests.observe(requests)

    def generated(self) -> None:
        """A token was generated."""
        self._tokens.inc()


class IngressMeasures:
    """Of one replica of the ingress."""

    def __init__(self) -> None:
        self._replies = metrics.Counter(
            "rukh_replies", "replies of the ingress", tag_keys=("model", "status")
        )
        self._retries = metrics.Counter("rukh_retries", "requests sent again", tag_keys=("model", "reason"))
        self._seconds = metrics.Histogram(
            "rukh_reply_seconds", "seconds to a reply", _SECONDS, tag_keys=("model",)
        )

    def replied(self, model: str, status: int, seconds: float) -> None:
        self._replies.inc(tags={"model": model, "status": str(status)})
        self._seconds.observe(seconds, tags={"model": model})

    def retried(self, model: str, reason: str) -> None:
        self._retries.inc(tags={"model": model, "reason": reason})
