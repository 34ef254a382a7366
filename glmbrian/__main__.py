"""``python -m glmbrian``."""

import sys

from .cli import main

sys.exit(main())
