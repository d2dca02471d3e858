"""The commands, each in a file by its name."""
