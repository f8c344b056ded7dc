"""All figures of the notebooks.

Each function takes tables of numbers and names, and returns a plotly figure whose title states the
finding. This room never trains, scores or reads a file.
"""

from ..core.rooms import front_door

__getattr__, __dir__ = front_door(
    __name__,
    {".style": ["set_title", "with_whiskers"]},
)
