"""The judge (to be filled)."""


def serve_judge() -> None:
    """Judge."""
    raise NotImplementedError
