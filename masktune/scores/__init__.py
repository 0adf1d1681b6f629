"""Numbers, pure, over predictions: groups, flips, abstention, evidence."""
