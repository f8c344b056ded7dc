"""All figures of the notebooks.

Each function takes tables of numbers and names, and returns a plotly figure whose title states the
finding. This room never trains, scores or reads a file.
"""

import plotly as plotly  # every module of this room draws with it
