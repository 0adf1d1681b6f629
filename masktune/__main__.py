"""``python -m masktune``."""

import sys

if __name__ == "__main__":
    try:
        from masktune.cli import main

        sys.exit(main())
    except KeyboardInterrupt:  # while PyTorch is still being imported
        sys.exit(130)
