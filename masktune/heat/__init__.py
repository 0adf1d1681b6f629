"""Where the model looks, and what is hidden."""
