"""What erasures had to keep: read it, and erase it when it need not be kept any more."""
