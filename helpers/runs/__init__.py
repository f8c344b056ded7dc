"""How notebooks are run and shown.

The notebooks and the folder ``params/<run>/`` come in. Executed notebooks and one page, the report
of the run, go out. This room never computes a result: notebooks do, with all other rooms.
"""
