"""Data that know their times: recordings, and the series of pynapple and pandas."""

from ..support.first_import import import_brian

import_brian()

from . import elephant, pandas, pynapple  # noqa: F401 (they register their readers)
