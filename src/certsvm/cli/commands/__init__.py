"""The commands; those that belong together share a file."""
