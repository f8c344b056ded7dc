"""What all other rooms use: paths, settings, parameters, files, progress bars, names and results.

It checks settings and parameters, writes files that are either complete or absent, turns
identifiers into readable names, and keeps the table of results. It imports no other room.
"""
