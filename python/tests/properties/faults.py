"""Known faults of the references, each with its reason; such cases are judged by the other one."""

from __future__ import annotations

from .draw import Case, Draw


def reference_fault(draw: Draw, case: Case) -> str | None:
    """Why the standard's reference implementation cannot be trusted with this case."""
    for operators, applies, reason in _FAULTS:
        if draw.operator in operators and applies(draw, case):
            return reason
    return None


_FAULTS: list = []
