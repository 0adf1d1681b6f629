"""Weights in and out; settings of a run that depend on them."""
