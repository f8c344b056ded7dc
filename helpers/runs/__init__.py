"""Run the notebooks and show what they found.

This room reads the notebooks and the folder ``params/<run>/``, and writes executed notebooks and
one HTML page, the report of the run. It never computes a result: the notebooks do, with all other
rooms.
"""
