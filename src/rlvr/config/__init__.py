"""The configuration of a workspace: its schema, and how the file is read."""
