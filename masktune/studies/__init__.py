"""Many runs: advice, sweeps, the paper's experiments."""
