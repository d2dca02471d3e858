"""What is proved, and all arithmetic of bounds with their rounding."""
