"""GLM neurons, synapses and inputs as Brian 2 objects."""

from ..support.first_import import import_brian

import_brian()
