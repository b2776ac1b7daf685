"""Results shown to people: reports, pages and notebooks. Results do not know it."""
