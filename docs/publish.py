"""Execute the committed notebooks in place: ``python docs/publish.py``, or ``make publish``.

They then show their results on GitHub, and hold nothing else. GitHub draws no plotly figure, so
each is stored as a picture, with its title as the text for who does not see it; that needs kaleido
and a Chrome or Chromium.
"""

import base64
import os
import sys
from html import unescape
from io import BytesIO
from pathlib import Path

import nbformat
import papermill
from PIL import Image

from helpers.core import paths
from helpers.core.artifacts import atomic_write
from helpers.runs.report import PLOTLY
from helpers.runs.stages import PAPERMILL, failure

KERNELSPEC = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
RENDERER = "plotly_mimetype+png"
PNG = "image/png"
WIDGET = "application/vnd.jupyter.widget-view+json"


def publish() -> None:
    """Execute every notebook at its default parameters, in order, and store the cleaned result.

    A notebook that fails is not changed.

    Raises
    ------
    ValueError
        where a cell fails or a figure cannot be drawn
    """
    os.environ |= {"PLOTLY_RENDERER": RENDERER, "TQDM_DISABLE": "1"}
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        print(path.stem, flush=True)
        try:
            book = papermill.execute_notebook(path, None, cwd=paths.NOTEBOOKS, **PAPERMILL)
        except Exception as error:
            raise ValueError(f"{path.stem} failed and was not changed, {failure(error)}") from None
        clean(book)
        with atomic_write(path) as partial:
            nbformat.write(book, partial)


def clean(book: nbformat.NotebookNode) -> None:
    """Keep of an executed notebook what a reader needs; in place.

    Goes: metadata other than tags, widget state, warnings on stderr, the data of figures, and the
    folders of this machine.
    """
    book.metadata = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    for cell in book.cells:
        tags = cell.metadata.get("tags")
        cell.metadata = {"tags": tags} if tags else {}
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
            for output in cell.outputs:
                _clean_output(output)


def _clean_output(output):
    if isinstance(output.get("text"), str):
        output.text = without_folders(output.text)
    data = output.get("data", {})
    data.pop(WIDGET, None)
    figure = data.pop(PLOTLY, None)
    if figure:
        title = figure["layout"]["title"]["text"]
        output.metadata = {PNG: {"alt": unescape(title.replace("<br>", " "))}}
    if PNG in data:
        data[PNG] = with_palette(data[PNG])
    for kind, content in data.items():
        if isinstance(content, str) and not kind.startswith("image/"):
            data[kind] = without_folders(content)


def with_palette(picture: str) -> str:
    """Return a PNG, in base64, with at most 256 colours: a quarter of its size, and as readable.

    Each colour of the picture is near one of the palette, also where few pixels have it.
    """
    full = Image.open(BytesIO(base64.b64decode(picture))).convert("RGB")
    method = Image.Quantize.MAXCOVERAGE
    reduced = full.quantize(256, method, kmeans=1, dither=Image.Dither.NONE)
    file = BytesIO()
    reduced.save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def without_folders(text: str) -> str:
    """Return a text with paths relative to the repository, and ``~`` for the home folder."""
    root = str(paths.ROOT)
    home = str(Path.home())
    text = text.replace(root + os.sep, "").replace(root, ".")
    if len(home) > 1:
        text = text.replace(home + os.sep, "~" + os.sep)
    return text


if __name__ == "__main__":
    try:
        publish()
    except ValueError as error:
        sys.exit(str(error))
