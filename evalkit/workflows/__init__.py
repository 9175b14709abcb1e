"""What a command does from end to end: read, compute, write. The command line only passes options on."""
