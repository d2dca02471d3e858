"""Certificates: primal and dual bounds, their rounding allowances, and their verification."""
