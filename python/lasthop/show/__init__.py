"""Results shown to people: reports, pages and notebooks. Nothing but the command line imports this."""
