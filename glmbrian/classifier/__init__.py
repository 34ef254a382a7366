"""The classifier, and what it is made of."""

from ..support.first_import import import_brian

import_brian()
