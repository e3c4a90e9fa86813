"""The archive in one SQLite file.

`operations` holds one short synchronous function per storage operation, each one transaction; `store`
runs them on a thread of its own behind the port.
"""
