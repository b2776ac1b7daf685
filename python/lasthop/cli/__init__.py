"""The command line: one module for each command, imported when it is needed."""


def main() -> None:
    """Run the command that `sys.argv` names."""
    from lasthop.cli.app import app

    app(prog_name="lasthop")
