"""Execute the committed notebooks in place, so that they show their results on GitHub and hold nothing else.

GitHub draws no plotly figure, so each is stored as a picture too; that needs kaleido and a Chrome or Chromium.
"""

import os
from pathlib import Path
from typing import Any

from helpers.core import paths
from helpers.core.artifacts import atomic_write
from helpers.runs.pipeline import PAPERMILL, failure

KERNELSPEC = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
RENDERER = "plotly_mimetype+png"


def publish() -> None:
    """Execute every notebook at its default parameters, in order, and replace it by its cleaned result.

    A notebook that fails is not changed. Raises ValueError if a cell fails or a figure cannot be drawn.
    """
    import nbformat
    import papermill

    os.environ["PLOTLY_RENDERER"] = RENDERER
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        print(path.stem, flush=True)
        try:
            book = papermill.execute_notebook(path, None, cwd=paths.NOTEBOOKS, **PAPERMILL)
        except Exception as error:
            raise ValueError(f"{path.stem} failed and was not changed, {failure(error)}") from None
        clean(book)
        with atomic_write(path) as partial:
            nbformat.write(book, partial)


def clean(book: Any) -> None:
    """Keep of an executed notebook what a reader needs; in place.

    Goes: metadata other than tags, widget state, warnings on stderr, and the folders of this machine.
    """
    book.metadata = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    for cell in book.cells:
        cell.metadata = {"tags": cell.metadata["tags"]} if cell.metadata.get("tags") else {}
        if cell.cell_type != "code":
            continue
        cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.outputs:
            data = output.get("data", {})
            data.pop("application/vnd.jupyter.widget-view+json", None)
            for texts, kind in [
                (output, "text"),
                *((data, kind) for kind in data if not kind.startswith("image/")),
            ]:
                if isinstance(texts.get(kind), str):
                    texts[kind] = without_folders(texts[kind])


def without_folders(text: str) -> str:
    """The text with paths relative to the repository, and ``~`` for the home folder."""
    root, home = str(paths.ROOT), str(Path.home())
    text = text.replace(root + os.sep, "").replace(root, ".")
    return text.replace(home + os.sep, "~" + os.sep) if len(home) > 1 else text
