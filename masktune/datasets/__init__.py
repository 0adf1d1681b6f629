"""One file a dataset, and the catalogue of all."""
