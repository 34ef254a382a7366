"""Decisions that wait until they are sure, or abstain, with an error that is held.

`scores` says how sure a network is in each step, `thresholds` finds the threshold that holds the
error, and `decision` applies it to a classifier.
"""

from ..support.first_import import import_brian

import_brian()
