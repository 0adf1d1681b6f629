"""The paper's experiments, repeated: what is run, what came out, and how it is shown."""
