"""Foreign transcripts to records and back. Pure: bytes in, values out; files, stores and clocks are the caller's."""
