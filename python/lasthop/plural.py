"""Counts with their nouns."""


def plural(count: int, noun: str) -> str:
    """Format a count with its noun.

    Examples
    --------
    >>> plural(1, "packet"), plural(20, "packet"), plural(11_986, "packet")
    ('1 packet', '20 packets', '11,986 packets')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
