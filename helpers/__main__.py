"""The commands of ``authorbook`` in a checkout: ``python -m helpers mine posts.csv``."""

import sys

from .accounts.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
