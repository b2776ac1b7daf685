"""The commands: a module for each, with its options, imported when the command runs."""
