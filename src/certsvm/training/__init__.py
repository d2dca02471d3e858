"""The training loop, its history and its checkpoints."""
