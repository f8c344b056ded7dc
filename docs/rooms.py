"""The rooms of helpers/ in numbers: ``python docs/rooms.py [commit]``, or ``make rooms``.

A row a room: modules, tokens of code, functions over 40 lines, and its longest function. Comments
and docstrings do not count. With a commit, the numbers of that commit stand in brackets.
"""

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "helpers"
MAX_FUNCTION_LINES = 40
COLUMNS = ("room", "modules", "tokens", "over 40 lines", "longest function")
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@dataclass
class Room:
    """What is counted in a room; a function is (lines, name)."""

    modules: int = 0
    tokens: int = 0
    long_functions: int = 0
    longest: tuple[int, str] = (0, "")

    def cells(self) -> list[str]:
        """Return the cells of its row."""
        lines, name = self.longest
        longest = f"{name}, {lines} lines" if name else "none"
        return [str(self.modules), f"{self.tokens:,}", str(self.long_functions), longest]

    def add(self, path: str, source: str) -> None:
        """Count a module.

        Parameters
        ----------
        path : str
            inside of the package
        source : str
            its code
        """
        tokens, lines_of_functions = counts_of(source)
        functions = [(lines, f"{path}: {name}") for lines, name in lines_of_functions]
        self.modules += 1
        self.tokens += tokens
        self.long_functions += sum(lines > MAX_FUNCTION_LINES for lines, _ in functions)
        self.longest = max([self.longest, *functions], key=lambda function: function[0])


@cache  # a module counts in its room and in all
def counts_of(source: str) -> tuple[int, list[tuple[int, str]]]:
    """Return the number of tokens of a module, and its functions as (lines, name)."""
    tree = ast.parse(source)
    return count_tokens(source, tree), list(function_lines(tree))


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """Return the docstring of a module, class or function, None where it has none."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if isinstance(node, kinds) and ast.get_docstring(node) is not None:
        return node.body[0]
    return None


def count_tokens(source: str, tree: ast.Module) -> int:
    """Return the number of tokens of a module, docstrings and comments left out.

    Parameters
    ----------
    source : str
        the code
    tree : Module
        the same, parsed
    """
    docstring_lines = set()
    for node in ast.walk(tree):
        docstring = docstring_of(node)
        if docstring is not None:
            docstring_lines.update(range(docstring.lineno, docstring.end_lineno + 1))
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    starts = [token.start[0] for token in tokens if token.type not in NOT_CODE]
    return sum(line not in docstring_lines for line in starts)


def function_lines(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every function as (lines without those of its docstring, name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = node.end_lineno - node.lineno + 1
            docstring = docstring_of(node)
            if docstring is not None:
                lines -= docstring.end_lineno - docstring.lineno + 1
            yield lines, node.name


def sources_now() -> dict[str, str]:
    """Read the modules of the package: path inside of it -> code."""
    folder = ROOT / PACKAGE
    files = sorted(folder.rglob("*.py"))
    return {file.relative_to(folder).as_posix(): file.read_text("utf-8") for file in files}


def sources_at(commit: str) -> dict[str, str]:
    """Read the modules of a commit, without a checkout.

    Raises
    ------
    ValueError
        where git does not know the commit, or it has no such package
    """
    command = ["git", "archive", "--end-of-options", commit, PACKAGE]
    archive = subprocess.run(command, cwd=ROOT, capture_output=True)
    if archive.returncode:
        reason = archive.stderr.decode().strip().splitlines()[0]
        raise ValueError(f"{PACKAGE}/ of {commit!r} cannot be read: {reason}")
    sources = {}
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        for member in files:
            if member.name.endswith(".py"):
                path = member.name.removeprefix(f"{PACKAGE}/")
                sources[path] = files.extractfile(member).read().decode("utf-8")
    return sources


def measure(sources: dict[str, str]) -> dict[str, Room]:
    """Count by room, and in all: path -> code becomes name -> Room."""
    rooms = defaultdict(Room)
    for path, source in sources.items():
        room = path.split("/")[0] if "/" in path else f"{PACKAGE}/"  # what is in no room
        rooms[room].add(path, source)
        rooms["all"].add(path, source)
    return dict(rooms)


def table(now: dict[str, Room], before: dict[str, Room] | None = None) -> str:
    """Return the rows as text, the largest room first.

    Parameters
    ----------
    now : dict
        of :func:`measure`
    before : dict or None
        the same of another commit, in brackets where it differs
    """
    rooms = (before or {}) | now
    tokens = {name: room.tokens for name, room in rooms.items() if name != "all"}
    rows = [COLUMNS]
    for name in [*sorted(tokens, key=tokens.get, reverse=True), "all"]:
        cells = now.get(name, Room()).cells()
        if before is not None:
            cells_before = before.get(name, Room()).cells()
            cells = [with_before(*pair) for pair in zip(cells, cells_before)]
        rows.append((name, *cells))
    return aligned(rows)


def with_before(cell: str, cell_before: str) -> str:
    """Add the cell of the other commit in brackets, where it differs.

    Parameters
    ----------
    cell, cell_before : str
        of one column
    """
    return cell if cell == cell_before else f"{cell} ({cell_before})"


def aligned(rows: list[tuple[str, ...]]) -> str:
    """Return rows as lines: numbers to the right, the first and the last column to the left."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows)]
    lines = []
    for first, *numbers, last in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(numbers, widths[1:])]
        lines.append("  ".join([*cells, last]))
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Print the table, beside the commit that the arguments name."""
    try:
        before = measure(sources_at(arguments[0])) if arguments else None
    except ValueError as error:
        sys.exit(str(error))
    print(table(measure(sources_now()), before))
    if arguments:
        print(f"in brackets: {arguments[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
