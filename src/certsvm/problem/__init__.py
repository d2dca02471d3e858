"""The optimisation problem: rows, labels, weights and C."""
