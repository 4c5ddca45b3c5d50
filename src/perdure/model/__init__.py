"""What travels: statuses, reasons, ids, errors, and every message in and out of workflows and activities.

Plain pydantic, no I/O. Everything else in Perdure may import it; it imports nothing of ours.
"""
