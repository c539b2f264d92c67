"""Secrets taken out of what is shown: keys, tokens and passwords, in JSON that is encoded already.

Owns how they are found and what stands in their place (`[redacted:KIND]`). Pure: bytes in, bytes
out, and the JSON has the same shape as before. It is for what goes out; nothing that is stored is
ever changed. docs/security.md says what is found and what is not.
"""

from .document import Redactor

__all__ = ["Redactor"]
