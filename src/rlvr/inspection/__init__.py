"""A person reads scored samples, blind; training stays shut until reader and reward agree."""
