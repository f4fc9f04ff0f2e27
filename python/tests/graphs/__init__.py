"""Random graphs: models of many nodes, compared with ONNX Runtime at every optimisation level.

`scope` grows a graph node by node; `evaluate` computes every node at once, unoptimised, so that each value is
known while the graph grows. `nodes` has the operators, `networks` what exporters write. `check` runs rukh
and judges, `reduce` makes a failure small, `keep` stores it under `cases`, and `__main__` does all of this in
several processes (`work`):

    python -m graphs --graphs 2000 --seed 1
"""
