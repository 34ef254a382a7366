"""The model without a simulator: NumPy only, and no Brian import."""
