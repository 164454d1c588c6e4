"""`effaced resolver ...`"""
