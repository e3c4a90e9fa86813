"""The outside world behind the ports: database, tokenizer, clock."""
