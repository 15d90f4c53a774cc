"""What a sender does with an item, step by step: look, transmit, attest."""
