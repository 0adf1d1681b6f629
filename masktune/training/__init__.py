"""The one loop, the paper's rounds, and the methods beside them."""
