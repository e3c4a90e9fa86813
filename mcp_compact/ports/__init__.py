"""What the use cases need of the outside: small protocols."""
