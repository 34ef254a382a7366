"""The classifier, and what it is made of."""
