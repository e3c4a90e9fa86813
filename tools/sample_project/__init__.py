"""The story, the project and the parts that turn them into the sample transcript."""
