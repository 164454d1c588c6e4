"""`effaced deadletter ...`"""
