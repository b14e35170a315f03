"""What runs on the other side: inside the sandbox's interpreter, which may be another Python than the host's.

These modules import nothing but the standard library and one another, and run on Python 3.8 and later. Only
:mod:`~rlvr.sandbox.guest.codec` and :mod:`~rlvr.sandbox.guest.seccomp` are used by the host too.
"""
