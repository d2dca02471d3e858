"""``python -m certsvm.cli``."""

from certsvm.cli import main

main()
