"""Other people's solvers on the same problem: ``python -m benchmarks.peers --help``."""
