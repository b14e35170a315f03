"""Plan: will it fit, and exactly which settings. Pure arithmetic; torch is imported by ``memory/trace.py`` alone."""
