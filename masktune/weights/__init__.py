"""Reading weights that were trained elsewhere, without ever running what a file says."""
