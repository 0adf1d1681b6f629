"""``python -m masktune``, and the entry point of ``masktune``."""

import sys

from masktune.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
