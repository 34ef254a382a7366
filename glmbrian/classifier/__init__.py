"""The classifier and its parts."""

from ..support.first_import import import_brian

import_brian()
