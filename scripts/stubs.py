"""Write python/lasthop/_lasthop.pyi from the extension module: `python scripts/stubs.py`, or `--check` it.

Names, defaults and most types come from Rust. Where Rust's type says little to Python, such as a dictionary,
the type is the one that the docstring states.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lasthop import _lasthop

ROOT = Path(__file__).parents[1]
STUB = ROOT / "python/lasthop/_lasthop.pyi"
HEAD = '''"""The compiled part of Lasthop. Made by scripts/stubs.py; docstrings are in the extension."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, SupportsFloat, SupportsIndex, final

import numpy as np
from numpy.typing import NDArray

from lasthop.python_scheme import Agent, PythonScheme, Reaction, ReceiverReaction
'''
# What Rust tells of a value that it takes from Python as it is, or makes for it.
BARE = {"dict", "list", "tuple", "sequence", "array", "callable"}
VAGUE = BARE | {"Any", "Incomplete", "Mapping"}
PROTOCOLS = {
    "__repr__": "str",
    "_repr_html_": "str",
    "_kind": "type[BaseException] | None",
    "_error": "BaseException | None",
    "_traceback": "TracebackType | None",
}
UNSTATED: list[str] = []
SERIES = {"list": "list[{}]", "tuple": "tuple[{}, ...]", "sequence": "Sequence[{}]", "array": "NDArray[{}]"}
MAPS = {"dict": "dict", "mapping": "Mapping"}
ELEMENTS = {"float": "np.float64", "int": "np.int64", "bool": "np.bool_"}


def says_little(annotation: ast.expr | None, vague: set[str]) -> bool:
    """Return whether an annotation has one of these types without its parts."""
    nodes = list(ast.walk(annotation)) if annotation else []
    parts = {id(node.value) for node in nodes if isinstance(node, ast.Subscript)}
    return any(isinstance(node, ast.Name) and node.id in vague and id(node) not in parts for node in nodes)


def fields(docstring: str | None, section: str) -> dict[str, str]:
    """Return the types that a section of a docstring states by name; unnamed results have the name ``""``."""
    found = re.search(rf"^{section}\n-+\n(.*?)(?=^\w+\n-+$|\Z)", docstring or "", re.MULTILINE | re.DOTALL)
    stated = {}
    for line in found[1].splitlines() if found else []:
        if line[:1].strip():
            names, _, kind = line.rpartition(" : ")
            stated.update(dict.fromkeys(names.split(", "), kind))
    return stated


def python_type(stated: str) -> str:
    """Return a type as numpydoc writes it as a type hint."""
    stated = re.sub(r", (default|optional|of) .*|, optional$", "", stated)
    if (kind := stated.removesuffix(" or None")) != stated:
        return f"{python_type(kind)} | None"
    if match := re.fullmatch(r"(list|tuple|sequence|array) of (.+)", stated):
        part = python_type(match[2])
        return SERIES[match[1]].format(ELEMENTS.get(part, part) if match[1] == "array" else part)
    if match := re.fullmatch(r"(dict|mapping) of (.+?) to (.+)", stated):
        return f"{MAPS[match[1]]}[{python_type(match[2])}, {python_type(match[3])}]"
    if match := re.fullmatch(r"\{(.+)\}", stated):
        return f"Literal[{match[1]}]"
    if match := re.fullmatch(r"\((.+)\)", stated):
        return f"tuple[{', '.join(map(python_type, match[1].split(', ')))}]"
    if " or " in stated:
        return " | ".join(map(python_type, stated.split(" or ")))
    return "NDArray[Any]" if stated == "numpy.ndarray" else stated


def hint(annotation: ast.expr | None, stated: dict[str, str], name: str, where: str) -> ast.expr | None:
    """Return an annotation, or what is stated of the name where that says more."""
    kind = PROTOCOLS.get(name) or stated.get(name, "")
    if not (says_little(annotation, VAGUE) or "{" in kind):
        return annotation
    try:
        found = ast.parse(python_type(kind), mode="eval").body
    except SyntaxError:
        found = None
    if not found or isinstance(found, ast.Tuple) or says_little(found, BARE):
        UNSTATED.append(f"{where}: {name or 'result'}: found {kind!r} in the docstring, expected a type")
    elif "None" in ast.unparse(annotation or found) and "None" not in ast.unparse(found):
        return ast.parse(f"{ast.unparse(found)} | None", mode="eval").body
    return found


def complete(function: ast.FunctionDef, attributes: dict[str, str], where: str) -> None:
    """Complete the annotations of a function, or of a property of a class with these attributes."""
    where = f"{where}.{function.name}"
    documentation = ast.get_docstring(function)
    if function.decorator_list and attributes.get(function.name):
        function.returns = hint(function.returns, attributes, function.name, where)
    elif function.name in PROTOCOLS:
        function.returns = hint(function.returns, {}, function.name, where)
    elif function.name != "__sub__":
        results = fields(documentation, "Returns")
        if len(results) > 1:
            results = {"": f"tuple[{', '.join(map(python_type, results.values()))}]"}
        function.returns = hint(function.returns, {"": next(iter(results.values()), "")}, "", where)
    parameters = fields(documentation, "Parameters")
    if function.name == "__new__":
        parameters = attributes
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        argument.annotation = hint(argument.annotation, parameters, argument.arg, where)
    if several := arguments.vararg:
        several.annotation = hint(several.annotation or ast.Name("Any"), parameters, f"*{several.arg}", where)
    function.body = [ast.Expr(ast.Constant(...))]


def exceptions() -> Iterator[str]:
    """Yield the definitions of exceptions, of which Rust tells nothing."""
    for name, value in vars(_lasthop).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            attributes = fields(inspect.getdoc(value), "Attributes").items()
            body = "\n".join(f"    {each}: {python_type(kind)}" for each, kind in attributes)
            yield f"class {name}({value.__bases__[0].__name__}):\n{body or '    ...'}\n"


def constants() -> Iterator[str]:
    """Yield the types of constants."""
    for name, value in sorted(vars(_lasthop).items()):
        if isinstance(value, tuple):
            yield f"{name}: tuple[str, ...]"
        elif isinstance(value, dict):
            yield f"{name}: dict[str, str]"
        elif isinstance(value, bool):
            yield f"{name}: bool"
    yield "__version__: str"


def stub() -> str:
    """Return the text of the stub."""
    with tempfile.TemporaryDirectory() as folder:
        maturin = [
            str(Path(sys.executable).with_name("maturin")),
            "generate-stubs",
            "--quiet",
            "--profile",
            "dev",
            "--out",
            folder,
        ]
        built = subprocess.run(maturin, cwd=ROOT, check=False, capture_output=True, text=True)
        if built.returncode:
            raise SystemExit(built.stderr)
        module = ast.parse(Path(folder, "lasthop/_lasthop.pyi").read_text())
    found: list[str] = []
    for node in module.body:
        if isinstance(node, ast.ClassDef):
            documentation = ast.get_docstring(node)
            attributes = fields(documentation, "Attributes") | fields(documentation, "Parameters")
            functions = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            for function in functions:
                complete(function, attributes, node.name)
            if documentation:
                del node.body[0]
            node.body = node.body or [ast.Expr(ast.Constant(...))]
            found.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef) and node.name != "__getattr__":
            complete(node, {}, "_lasthop")
            found.append(ast.unparse(node))
    names = [*sorted(name for name in vars(_lasthop) if not name.startswith("__")), "__version__"]
    listed = f"__all__ = {names!r}"
    text = "\n\n".join([HEAD, listed, "\n".join(constants()), *exceptions(), *found])
    if UNSTATED:
        raise SystemExit("\n".join(UNSTATED))
    # What Rust takes is more, or said in words that no one knows.
    text = text.replace("SupportsGetItem[int, ", "Sequence[")
    text = text.replace("dict[str, SupportsFloat | SupportsIndex]", "dict[str, float]")
    for command in (["check", "--fix-only", "--select", "F,I,RUF022"], ["format"]):
        ruff = [
            str(Path(sys.executable).with_name("ruff")),
            *command,
            "--quiet",
            "--stdin-filename",
            str(STUB),
            "-",
        ]
        text = subprocess.run(
            ruff, input=text, text=True, stdout=subprocess.PIPE, cwd=ROOT, check=True
        ).stdout
    return text


def main() -> None:
    """Write the stub, or compare it."""
    made = stub()
    if "--check" not in sys.argv:
        STUB.write_text(made)
    elif STUB.read_text() != made:
        raise SystemExit(f"{STUB.relative_to(ROOT)} is not what `python scripts/stubs.py` makes")


if __name__ == "__main__":
    main()
