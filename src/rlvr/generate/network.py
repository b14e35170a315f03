"""Whether the Hub can be reached, asked once, so that a machine without a network hears it at once.

The Hub's client retries each file five times with growing pauses: three quarters of a minute for one message.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
from urllib.parse import urlsplit

DEFAULT_ENDPOINT = "https://huggingface.co"
PATIENCE_S = 5.0
OFFLINE = "HF_HUB_OFFLINE"


@functools.cache
def hub_is_reachable() -> bool:
    """Return whether a connection to the Hub (or to a proxy in front of it) can be opened within five seconds."""
    if os.environ.get(OFFLINE, "").lower() in ("1", "true", "yes", "on"):
        return False
    proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
    place = urlsplit(proxy or os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT)
    port = place.port or (443 if place.scheme == "https" else 80)
    try:
        socket.create_connection((place.hostname or "", port), timeout=PATIENCE_S).close()
    except OSError:
        return False
    return True


def stay_offline_when_unreachable() -> None:
    """Make the Hub's client answer from its cache alone where no network is: call it before a Hub id is loaded."""
    if hub_is_reachable():
        return
    os.environ[OFFLINE] = "1"
    for name in ("huggingface_hub.constants", "transformers.utils.hub", "datasets.config"):
        module = sys.modules.get(name)
        if module is not None and hasattr(module, OFFLINE):
            setattr(module, OFFLINE, True)  # it was read at import
