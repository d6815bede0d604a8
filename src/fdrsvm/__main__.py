"""``python -m fdrsvm`` is the command line."""

import sys

from fdrsvm.cli import main

sys.exit(main())
