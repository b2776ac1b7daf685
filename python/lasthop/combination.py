"""Names of combinations of schemes, such as `snoop@gateway + arq`."""


def canonical(combination: str) -> str:
    """Return the form of a combination's name in results, whatever its spaces.

    Examples
    --------
    >>> canonical("snoop @ gateway+arq")
    'snoop@gateway + arq'
    """
    parts = ("@".join(word.strip() for word in part.split("@", 1)) for part in combination.split("+"))
    return " + ".join(parts)


def schemes_of(combination: str) -> list[str]:
    """Return the schemes of a combination, in order, without their nodes.

    Examples
    --------
    >>> schemes_of("snoop@gateway + arq")
    ['snoop', 'arq']
    """
    return [part.split("@", 1)[0].strip() for part in combination.split("+")]
