"""Ratios of the core against a plain forward pass, a peer and its own limits."""
