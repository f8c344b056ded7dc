"""What everything stands on: paths, settings, parameters, files written whole, progress, names, results."""
