"""Shared code of the authorbook notebooks: learn, regularise and evaluate author embeddings.

Nothing heavy is imported here: ``import helpers`` costs milliseconds, each module brings what it needs.
"""

import warnings

__version__ = "0.1.0"

# libraries ask for a progress widget; notebooks here show plain text, since widget state does not survive on GitHub
warnings.filterwarnings("ignore", message="IProgress not found")


def __getattr__(name: str):
    """``from helpers import AuthorEncoder``, not before it is asked for."""
    if name == "AuthorEncoder":
        from helpers.accounts.encoder import AuthorEncoder

        return AuthorEncoder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
