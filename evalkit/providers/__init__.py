"""What is sent to models: prompts from data, byte for byte."""
