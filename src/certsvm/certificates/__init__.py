"""Certificates: primal and dual bounds, and their rounding allowances."""
