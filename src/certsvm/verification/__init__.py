"""The exact checker: interval arithmetic, verdicts, witnesses. It shares nothing with training."""
