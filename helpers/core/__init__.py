"""What everything stands on: paths, settings, parameters, whole files, progress, names, results.

Identifiers, settings and metrics come in; names for people, checked values, files that are whole
or absent, and the one table of results go out. This room never knows a corpus, an encoder or a
protocol.
"""
