"""Models for several values of C."""
