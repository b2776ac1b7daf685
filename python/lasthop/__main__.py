"""`python -m lasthop`: the command line."""

from lasthop.cli import main

if __name__ == "__main__":
    main()
