"""A sample transcript: an afternoon of work on an invented project, made by a script."""
