"""The labelling page on this machine: who labels what, and every decision kept."""
