"""The second-order method: what its forms share."""
