"""Pages about fits, paths and choices of C."""
