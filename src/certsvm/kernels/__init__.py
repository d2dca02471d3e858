"""Compiled functions on plain arrays; they know nothing of the modules above them."""
