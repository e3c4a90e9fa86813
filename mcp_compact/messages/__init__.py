"""What a conversation is: pure values and laws. No input, no output, no clock, no third-party import."""
