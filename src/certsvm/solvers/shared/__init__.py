"""Pieces of algorithms that several solvers share."""
