"""`python -m lasthop`: the command line."""

from lasthop.cli import main

main()
