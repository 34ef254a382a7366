"""Decisions that wait until they are sure, or abstain, so that their error stays below a bound.

`scores` says how sure a network is in each step, `thresholds` tests which thresholds keep the error
below the bound, and `decision` applies the chosen one to a classifier.
"""

from ..support.first_import import import_brian

import_brian()
