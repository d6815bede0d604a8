"""What a curious server could learn from a run: its messages recorded, and attacked."""

from fdrsvm.privacy.leak_audit import ClientLeak, LeakAudit, audit_leak, audit_sums
from fdrsvm.privacy.recording import Recorded, Recording, read_recording

__all__ = [
    "ClientLeak",
    "LeakAudit",
    "Recorded",
    "Recording",
    "audit_leak",
    "audit_sums",
    "read_recording",
]
