"""What providers refuse: their rules as checks over lists, and repairs that change as little as possible."""
