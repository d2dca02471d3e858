"""From data to fitted classes."""
