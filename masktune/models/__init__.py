"""Networks, what they answer, and asking them."""
