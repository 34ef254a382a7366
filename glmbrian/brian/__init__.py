"""GLM neurons, their synapses and inputs as objects of a Brian 2 network."""

from ..support.first_import import import_brian

import_brian()
