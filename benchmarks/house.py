"""How large the code is and how far one fit walks through it: python -m benchmarks.house [SOURCE].

All but the walk is read from the text of a source folder, ``src/fdrsvm`` if none is given, so that
another release or another package can be measured with the same ruler:

Body      lines of a function without its docstring
Private   functions whose names begin with one underscore; used once if the name occurs at most once
          in the folder, definitions apart
Values    classes that are dataclasses or named tuples
Comments  tokens that are comments, beside lines that hold code
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

import numpy as np

import fdrsvm
from fdrsvm import FDRSVC

_LONG = 40  # lines of a body
_SILENT = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


class Walk:
    """Notes where in the package this thread goes between ``begin`` and ``end``.

    ``functions`` has those called, by file, both in the order of their first visit; ``depth`` is
    how many of them were open at once.
    """

    def __init__(self) -> None:
        self.functions: dict[str, dict[str, None]] = {}
        self.depth = self._open = 0
        self._root = os.path.dirname(fdrsvm.__file__)

    def begin(self) -> None:
        """From the next call on."""
        sys.setprofile(self._watch)

    def end(self) -> None:
        """What comes later is not noted."""
        sys.setprofile(None)

    def _watch(self, frame: Any, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if not path.startswith(self._root):
            return
        if event == "call":
            self._open += 1
            self.depth = max(self.depth, self._open)
            names = self.functions.setdefault(Path(path).relative_to(self._root).as_posix(), {})
            names[frame.f_code.co_qualname] = None
        elif event == "return":
            self._open -= 1


def one_fit() -> None:
    """Four clients, two classes, default settings."""
    rng = np.random.default_rng(0)
    X = rng.random((200, 6))
    y = np.where(X @ rng.normal(size=6) > 0.0, 1, -1)
    FDRSVC().fit(X, y, clients=np.arange(200) % 4)


class Names(NamedTuple):
    """What a source folder calls its things, and how much of it there is.

    How often each module's name occurs (those of commands, in ``cli``, left out: a command may be
    called after what it calls) and each class's; the nodes of all its syntax trees.
    """

    modules: Counter[str]
    classes: Counter[str]
    n_lines: int
    n_private: int
    n_used_once: int
    texts: list[str]
    nodes: list[ast.AST]


def measure_names(root: Path) -> Names:
    """Of every module below a folder."""
    modules: Counter[str] = Counter()
    texts, nodes, private = [], [], set()
    for path in sorted(root.rglob("*.py")):
        texts.append(path.read_text(encoding="utf-8"))
        modules[path.name] += path.parent.name != "cli" and not path.name.startswith("__")
        for node in ast.walk(ast.parse(texts[-1])):
            nodes.append(node)
            if isinstance(node, ast.FunctionDef) and re.match("_[^_]", node.name):
                private.add((path.name, node.name))
    uses = Counter(node.id for node in nodes if isinstance(node, ast.Name))
    uses.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
    return Names(
        modules,
        Counter(node.name for node in nodes if isinstance(node, ast.ClassDef)),
        sum(text.count("\n") for text in texts),
        len(private),
        sum(uses[name] <= 1 for _, name in private),
        texts,
        nodes,
    )


def measure(root: Path) -> dict[str, str]:
    """Sizes of a source folder, in words."""
    names = measure_names(root)
    nodes = names.nodes
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    bodies = [_body_length(node) for node in functions]
    comments, code = map(sum, zip(*map(_count_comments, names.texts), strict=True))
    return {
        "files / lines": f"{len(names.texts)} / {names.n_lines:,}",
        "median / p90 body": f"{median(bodies):.0f} / {quantiles(bodies, n=10)[-1]:.0f}",
        f"functions over {_LONG} lines": str(sum(length > _LONG for length in bodies)),
        "private functions / used once": f"{names.n_private} / {names.n_used_once}",
        "classes that only hold values": f"{sum(map(_holds_values, classes))} of {len(classes)}",
        "comments, % of code": f"{100.0 * comments / code:.1f}",
        "fully typed": f"{100.0 * sum(map(_is_typed, functions)) / len(functions):.0f} %",
    }


def _body_length(function: Any) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def _count_comments(text: str) -> tuple[int, int]:
    """Comments, and lines of code; docstrings are neither."""
    comments, code, opens = 0, set(), True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments += 1
        elif token.type in _SILENT:
            opens = opens or token.type == tokenize.NEWLINE
        elif token.type == tokenize.STRING and opens:
            continue  # a statement that is only text
        else:
            code.update(range(token.start[0], token.end[0] + 1))
            opens = False
    return comments, len(code)


def _holds_values(node: ast.ClassDef) -> bool:
    marks = [ast.unparse(mark) for mark in (*node.decorator_list, *node.bases)]
    return any("dataclass" in mark or "NamedTuple" in mark for mark in marks)


def _is_typed(function: Any) -> bool:
    named = function.args
    arguments = [*named.posonlyargs, *named.args, *named.kwonlyargs]
    has_types = [entry.annotation or entry.arg in ("self", "cls") for entry in arguments]
    return function.returns is not None and all(has_types)


if __name__ == "__main__":
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(fdrsvm.__file__).parent
    rows = measure(source)
    if len(sys.argv) == 1:
        one_fit()  # whatever happens only once
        tour = Walk()
        tour.begin()
        one_fit()
        tour.end()
        n_functions = sum(map(len, tour.functions.values()))
        visited = f"{len(tour.functions)} / {n_functions} / {tour.depth}"
        rows["one fit: files / functions / depth"] = visited
    for name, value in rows.items():
        print(f"{name:36} {value}")
