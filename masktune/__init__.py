"""MaskTune: find the clue a classifier leans on, hide it, finetune for one epoch, compare."""
