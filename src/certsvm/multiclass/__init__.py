"""Several classes: one binary problem for each, and weights for classes and rows."""
