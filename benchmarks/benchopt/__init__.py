"""certsvm in benchopt's public benchmark of linear SVMs without intercept; see docs/benchopt.md."""
