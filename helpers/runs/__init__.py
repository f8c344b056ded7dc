"""How notebooks are run: paths, parameters, artifacts, results, report."""
