"""Read a YAML file of parameters within bounds: no file, however made, takes long or much memory.

The aliases of YAML are allowed, since runs share settings by them, but count as what they stand
for: a few lines of aliases of aliases can stand for more nodes than any memory holds.
"""

import sys
from pathlib import Path
from typing import Any

import yaml

from .errors import FileError, readable_file

MAX_BYTES = 100_000
MAX_NODES = 10_000  # keys, values, lists and dicts, those behind aliases counted each time
MAX_LEVELS = 20


def read_parameter_file(path: str | Path, where: str = "") -> Any:
    """Return the content of a YAML file; None for an empty one.

    Parameters
    ----------
    path : str or Path
        the file
    where : str
        the name of the file in an error's message; by default its path

    Raises
    ------
    FileError
        where the file cannot be read, is no YAML, or is larger or deeper than a file of parameters
        needs to be
    """
    where = where or str(path)
    with readable_file(path), open(path, "rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise FileError(f"{where} has more than {MAX_BYTES:,} bytes: it is no file of parameters")
    try:
        text = content.decode("utf-8")
        _check_size(text, where)
        parameters = yaml.safe_load(text)
        repr(parameters)  # fails where an integer has too many digits to be printed
    except FileError:
        raise
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no UTF-8, no date, too many digits
        problem = " ".join(str(error).split())
        if "integer string conversion" in problem:
            problem = f"an integer has more than {sys.get_int_max_str_digits():,} digits"
        raise FileError(f"{where} is not valid YAML: {problem}") from None
    return parameters


def _check_size(text, where):
    """Raise FileError where a text has too many nodes or levels, without building any of them."""
    size_of_anchor = {}  # anchor -> nodes and levels of what its aliases stand for
    anchors = [None]  # of the collections that are open, the outermost first
    sizes = [(0, 0)]  # their nodes and levels so far
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor)
            sizes.append((1, 0))
            size = (0, 0)  # counted when it is closed
        elif isinstance(event, yaml.CollectionEndEvent):
            nodes, levels = sizes.pop()
            size = (nodes, levels + 1)
            size_of_anchor[anchors.pop()] = size
        elif isinstance(event, yaml.ScalarEvent):
            size = (1, 0)
            size_of_anchor[event.anchor] = size
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in size_of_anchor or event.anchor in anchors:
                raise FileError(f"{where} has an alias *{event.anchor} of nothing before it")
            size = size_of_anchor[event.anchor]
        else:
            continue
        nodes, levels = sizes[-1]
        sizes[-1] = (nodes + size[0], max(levels, size[1]))
        if sizes[-1][0] > MAX_NODES or max(len(sizes) - 1, sizes[-1][1]) > MAX_LEVELS:
            raise FileError(
                f"{where} has more than {MAX_NODES:,} values or {MAX_LEVELS} levels, aliases "
                "counted as what they stand for: it is no file of parameters"
            )
