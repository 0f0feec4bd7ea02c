"""`python -m recollect` is the command `recollect`."""

from recollect.cli.main import main

main()
