"""What the Makefile and the workflows run, and a user does not need."""
