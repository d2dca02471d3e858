"""The second-order method: one schedule, and what its forms share.

``schedule`` explains the method. Its forms are ``solvers.newton`` for rows in memory,
``solvers.smoothed_newton`` for sums over parts, and ``torch.newton`` for tensors.
"""
