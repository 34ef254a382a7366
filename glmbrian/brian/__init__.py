"""GLM neurons, their synapses and inputs as objects of a Brian 2 network."""
