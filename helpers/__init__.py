"""Shared code of the authorbook notebooks: learn, regularise and evaluate author embeddings.

Nothing heavy is imported here: ``import helpers`` costs milliseconds, each module brings what it needs.
"""

__version__ = "0.1.0"
