"""Make a page of a template beside this module, with its style; text in it is escaped."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader

FOLDER = Path(__file__).parent


def render_page(name: str, fields: dict) -> str:
    """Return a page as HTML.

    Parameters
    ----------
    name : str
        of the template, ``name.html``, and of its style, ``name.css``
    fields : dict
        what the template shows
    """
    environment = Environment(
        loader=FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    style = (FOLDER / f"{name}.css").read_text("utf-8")
    return environment.get_template(f"{name}.html").render(fields, style=style)
