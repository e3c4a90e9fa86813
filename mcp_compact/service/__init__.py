"""The use cases: what a tool or a command does, without SQL and without MCP."""
