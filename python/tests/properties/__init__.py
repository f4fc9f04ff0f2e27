"""Property tests: random valid one-node models, compared with the standard's reference implementation.

`draw` makes random sizes, types and values; one module for each family of operators makes cases from them;
`reference` says what a case's outputs are, and who knows that; `compare` judges; `test_operators` runs.
"""
