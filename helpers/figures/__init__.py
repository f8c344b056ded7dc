"""Every figure of the notebooks.

Tables of numbers and names come in; a plotly figure whose title states the finding goes out. This
room never trains, scores or reads a file.
"""
