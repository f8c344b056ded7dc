"""Shared code of the authorbook notebooks: learn, regularise and evaluate author embeddings.

Nothing heavy is imported here: ``import helpers`` costs milliseconds, each module brings what it needs.
"""

import warnings

__version__ = "0.1.0"

# libraries ask for a progress widget; notebooks here show plain text, since widget state does not survive on GitHub
warnings.filterwarnings("ignore", message="IProgress not found")
