"""What a client's hook does at each event. What only notes stands on few modules; the rest is loaded when due."""
