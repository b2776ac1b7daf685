"""The engine of experiments: what runs next, where it runs, and when it stops."""
